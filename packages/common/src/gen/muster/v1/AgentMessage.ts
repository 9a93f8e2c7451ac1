// Original file: proto/muster/v1/agent.proto

import type { Hello as _muster_v1_Hello, Hello__Output as _muster_v1_Hello__Output } from '../../muster/v1/Hello.ts';
import type { Heartbeat as _muster_v1_Heartbeat, Heartbeat__Output as _muster_v1_Heartbeat__Output } from '../../muster/v1/Heartbeat.ts';
import type { Prepared as _muster_v1_Prepared, Prepared__Output as _muster_v1_Prepared__Output } from '../../muster/v1/Prepared.ts';
import type { TaskReport as _muster_v1_TaskReport, TaskReport__Output as _muster_v1_TaskReport__Output } from '../../muster/v1/TaskReport.ts';
import type { NodeStatus as _muster_v1_NodeStatus, NodeStatus__Output as _muster_v1_NodeStatus__Output } from '../../muster/v1/NodeStatus.ts';
import type { Checked as _muster_v1_Checked, Checked__Output as _muster_v1_Checked__Output } from '../../muster/v1/Checked.ts';
import type { CheckpointSeen as _muster_v1_CheckpointSeen, CheckpointSeen__Output as _muster_v1_CheckpointSeen__Output } from '../../muster/v1/CheckpointSeen.ts';
import type { TrainingSignSeen as _muster_v1_TrainingSignSeen, TrainingSignSeen__Output as _muster_v1_TrainingSignSeen__Output } from '../../muster/v1/TrainingSignSeen.ts';
import type { CredentialOffer as _muster_v1_CredentialOffer, CredentialOffer__Output as _muster_v1_CredentialOffer__Output } from '../../muster/v1/CredentialOffer.ts';
import type { CredentialKept as _muster_v1_CredentialKept, CredentialKept__Output as _muster_v1_CredentialKept__Output } from '../../muster/v1/CredentialKept.ts';
import type { TokenKept as _muster_v1_TokenKept, TokenKept__Output as _muster_v1_TokenKept__Output } from '../../muster/v1/TokenKept.ts';

export interface AgentMessage {
  'hello'?: (_muster_v1_Hello | null);
  'heartbeat'?: (_muster_v1_Heartbeat | null);
  'prepared'?: (_muster_v1_Prepared | null);
  'report'?: (_muster_v1_TaskReport | null);
  'status'?: (_muster_v1_NodeStatus | null);
  'checked'?: (_muster_v1_Checked | null);
  'checkpoint'?: (_muster_v1_CheckpointSeen | null);
  'trainingSign'?: (_muster_v1_TrainingSignSeen | null);
  'credentialOffer'?: (_muster_v1_CredentialOffer | null);
  'credentialKept'?: (_muster_v1_CredentialKept | null);
  'tokenKept'?: (_muster_v1_TokenKept | null);
  'body'?: "hello"|"heartbeat"|"prepared"|"report"|"status"|"checked"|"checkpoint"|"trainingSign"|"credentialOffer"|"credentialKept"|"tokenKept";
}

export interface AgentMessage__Output {
  'hello'?: (_muster_v1_Hello__Output | null);
  'heartbeat'?: (_muster_v1_Heartbeat__Output | null);
  'prepared'?: (_muster_v1_Prepared__Output | null);
  'report'?: (_muster_v1_TaskReport__Output | null);
  'status'?: (_muster_v1_NodeStatus__Output | null);
  'checked'?: (_muster_v1_Checked__Output | null);
  'checkpoint'?: (_muster_v1_CheckpointSeen__Output | null);
  'trainingSign'?: (_muster_v1_TrainingSignSeen__Output | null);
  'credentialOffer'?: (_muster_v1_CredentialOffer__Output | null);
  'credentialKept'?: (_muster_v1_CredentialKept__Output | null);
  'tokenKept'?: (_muster_v1_TokenKept__Output | null);
  'body'?: "hello"|"heartbeat"|"prepared"|"report"|"status"|"checked"|"checkpoint"|"trainingSign"|"credentialOffer"|"credentialKept"|"tokenKept";
}
