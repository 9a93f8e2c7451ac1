// Original file: proto/muster/v1/muster.proto

import type { TokenBudget as _muster_v1_TokenBudget, TokenBudget__Output as _muster_v1_TokenBudget__Output } from '../../muster/v1/TokenBudget.ts';
import type { BudgetUse as _muster_v1_BudgetUse, BudgetUse__Output as _muster_v1_BudgetUse__Output } from '../../muster/v1/BudgetUse.ts';
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
  'budget'?: (_muster_v1_TokenBudget | null);
  'usedBudget'?: (_muster_v1_BudgetUse | null);
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
  'budget': (_muster_v1_TokenBudget__Output | null);
  'usedBudget': (_muster_v1_BudgetUse__Output | null);
  '_node'?: "node";
  '_lastUsedAtMs'?: "lastUsedAtMs";
  '_expiresAtMs'?: "expiresAtMs";
  '_user'?: "user";
}
