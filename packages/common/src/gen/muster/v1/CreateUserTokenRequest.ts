// Original file: proto/muster/v1/muster.proto

import type { TokenBudget as _muster_v1_TokenBudget, TokenBudget__Output as _muster_v1_TokenBudget__Output } from '../../muster/v1/TokenBudget.ts';
import type { Long } from '@grpc/proto-loader';

export interface CreateUserTokenRequest {
  'user'?: (string);
  'label'?: (string);
  'projects'?: (string)[];
  'verbs'?: (string)[];
  'lifetimeMs'?: (number | string | Long);
  'budget'?: (_muster_v1_TokenBudget | null);
  '_user'?: "user";
  '_lifetimeMs'?: "lifetimeMs";
}

export interface CreateUserTokenRequest__Output {
  'user'?: (string);
  'label': (string);
  'projects': (string)[];
  'verbs': (string)[];
  'lifetimeMs'?: (number);
  'budget': (_muster_v1_TokenBudget__Output | null);
  '_user'?: "user";
  '_lifetimeMs'?: "lifetimeMs";
}
