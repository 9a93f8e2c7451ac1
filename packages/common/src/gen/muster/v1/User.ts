// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface User {
  'name'?: (string);
  'role'?: (string);
  'projects'?: (string)[];
  'createdAtMs'?: (number | string | Long);
}

export interface User__Output {
  'name': (string);
  'role': (string);
  'projects': (string)[];
  'createdAtMs': (number);
}
