// Original file: proto/muster/v1/agent.proto

import type { Welcome as _muster_v1_Welcome, Welcome__Output as _muster_v1_Welcome__Output } from '../../muster/v1/Welcome.ts';
import type { HeartbeatAck as _muster_v1_HeartbeatAck, HeartbeatAck__Output as _muster_v1_HeartbeatAck__Output } from '../../muster/v1/HeartbeatAck.ts';
import type { Assignment as _muster_v1_Assignment, Assignment__Output as _muster_v1_Assignment__Output } from '../../muster/v1/Assignment.ts';
import type { Start as _muster_v1_Start, Start__Output as _muster_v1_Start__Output } from '../../muster/v1/Start.ts';
import type { Stop as _muster_v1_Stop, Stop__Output as _muster_v1_Stop__Output } from '../../muster/v1/Stop.ts';
import type { Forget as _muster_v1_Forget, Forget__Output as _muster_v1_Forget__Output } from '../../muster/v1/Forget.ts';
import type { ClearCondition as _muster_v1_ClearCondition, ClearCondition__Output as _muster_v1_ClearCondition__Output } from '../../muster/v1/ClearCondition.ts';
import type { Check as _muster_v1_Check, Check__Output as _muster_v1_Check__Output } from '../../muster/v1/Check.ts';
import type { KeepCheckpoints as _muster_v1_KeepCheckpoints, KeepCheckpoints__Output as _muster_v1_KeepCheckpoints__Output } from '../../muster/v1/KeepCheckpoints.ts';
import type { RenewCredential as _muster_v1_RenewCredential, RenewCredential__Output as _muster_v1_RenewCredential__Output } from '../../muster/v1/RenewCredential.ts';
import type { CredentialTaken as _muster_v1_CredentialTaken, CredentialTaken__Output as _muster_v1_CredentialTaken__Output } from '../../muster/v1/CredentialTaken.ts';
import type { NextToken as _muster_v1_NextToken, NextToken__Output as _muster_v1_NextToken__Output } from '../../muster/v1/NextToken.ts';
import type { Beat as _muster_v1_Beat, Beat__Output as _muster_v1_Beat__Output } from '../../muster/v1/Beat.ts';

export interface CoordinatorMessage {
  'welcome'?: (_muster_v1_Welcome | null);
  'heartbeatAck'?: (_muster_v1_HeartbeatAck | null);
  'prepare'?: (_muster_v1_Assignment | null);
  'start'?: (_muster_v1_Start | null);
  'stop'?: (_muster_v1_Stop | null);
  'forget'?: (_muster_v1_Forget | null);
  'clearCondition'?: (_muster_v1_ClearCondition | null);
  'check'?: (_muster_v1_Check | null);
  'keepCheckpoints'?: (_muster_v1_KeepCheckpoints | null);
  'renewCredential'?: (_muster_v1_RenewCredential | null);
  'credentialTaken'?: (_muster_v1_CredentialTaken | null);
  'nextToken'?: (_muster_v1_NextToken | null);
  'beat'?: (_muster_v1_Beat | null);
  'body'?: "welcome"|"heartbeatAck"|"prepare"|"start"|"stop"|"forget"|"clearCondition"|"check"|"keepCheckpoints"|"renewCredential"|"credentialTaken"|"nextToken"|"beat";
}

export interface CoordinatorMessage__Output {
  'welcome'?: (_muster_v1_Welcome__Output | null);
  'heartbeatAck'?: (_muster_v1_HeartbeatAck__Output | null);
  'prepare'?: (_muster_v1_Assignment__Output | null);
  'start'?: (_muster_v1_Start__Output | null);
  'stop'?: (_muster_v1_Stop__Output | null);
  'forget'?: (_muster_v1_Forget__Output | null);
  'clearCondition'?: (_muster_v1_ClearCondition__Output | null);
  'check'?: (_muster_v1_Check__Output | null);
  'keepCheckpoints'?: (_muster_v1_KeepCheckpoints__Output | null);
  'renewCredential'?: (_muster_v1_RenewCredential__Output | null);
  'credentialTaken'?: (_muster_v1_CredentialTaken__Output | null);
  'nextToken'?: (_muster_v1_NextToken__Output | null);
  'beat'?: (_muster_v1_Beat__Output | null);
  'body'?: "welcome"|"heartbeatAck"|"prepare"|"start"|"stop"|"forget"|"clearCondition"|"check"|"keepCheckpoints"|"renewCredential"|"credentialTaken"|"nextToken"|"beat";
}
