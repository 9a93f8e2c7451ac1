// Original file: proto/muster/v1/muster.proto

import type { TokenBudget as _muster_v1_TokenBudget, TokenBudget__Output as _muster_v1_TokenBudget__Output } from '../../muster/v1/TokenBudget.ts';
import type { BudgetUse as _muster_v1_BudgetUse, BudgetUse__Output as _muster_v1_BudgetUse__Output } from '../../muster/v1/BudgetUse.ts';

export interface Caller {
  'id'?: (string);
  'kind'?: (string);
  'user'?: (string);
  'role'?: (string);
  'verbs'?: (string)[];
  'budget'?: (_muster_v1_TokenBudget | null);
  'used'?: (_muster_v1_BudgetUse | null);
}

export interface Caller__Output {
  'id': (string);
  'kind': (string);
  'user': (string);
  'role': (string);
  'verbs': (string)[];
  'budget': (_muster_v1_TokenBudget__Output | null);
  'used': (_muster_v1_BudgetUse__Output | null);
}
