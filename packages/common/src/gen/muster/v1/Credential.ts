// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface Credential {
  'id'?: (string);
  'kind'?: (string);
  'node'?: (string);
  'createdAtMs'?: (number | string | Long);
  'lastUsedAtMs'?: (number | string | Long);
  'expiresAtMs'?: (number | string | Long);
  'openCalls'?: (number);
  'used'?: (boolean);
  'replaces'?: (boolean);
  'user'?: (string);
  'label'?: (string);
  'projects'?: (string)[];
  'verbs'?: (string)[];
  '_node'?: "node";
  '_lastUsedAtMs'?: "lastUsedAtMs";
  '_expiresAtMs'?: "expiresAtMs";
  '_user'?: "user";
}

export interface Credential__Output {
  'id': (string);
  'kind': (string);
  'node'?: (string);
  'createdAtMs': (number);
  'lastUsedAtMs'?: (number);
  'expiresAtMs'?: (number);
  'openCalls': (number);
  'used': (boolean);
  'replaces': (boolean);
  'user'?: (string);
  'label': (string);
  'projects': (string)[];
  'verbs': (string)[];
  '_node'?: "node";
  '_lastUsedAtMs'?: "lastUsedAtMs";
  '_expiresAtMs'?: "expiresAtMs";
  '_user'?: "user";
}
