// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface Secret {
  'project'?: (string);
  'name'?: (string);
  'createdAtMs'?: (number | string | Long);
  'changedAtMs'?: (number | string | Long);
  'changedBy'?: (string);
}

export interface Secret__Output {
  'project': (string);
  'name': (string);
  'createdAtMs': (number);
  'changedAtMs': (number);
  'changedBy': (string);
}
