// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface CreateUserTokenRequest {
  'user'?: (string);
  'label'?: (string);
  'projects'?: (string)[];
  'verbs'?: (string)[];
  'lifetimeMs'?: (number | string | Long);
  '_user'?: "user";
  '_lifetimeMs'?: "lifetimeMs";
}

export interface CreateUserTokenRequest__Output {
  'user'?: (string);
  'label': (string);
  'projects': (string)[];
  'verbs': (string)[];
  'lifetimeMs'?: (number);
  '_user'?: "user";
  '_lifetimeMs'?: "lifetimeMs";
}
