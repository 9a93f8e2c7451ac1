import type * as grpc from '@grpc/grpc-js';
import type { EnumTypeDefinition, MessageTypeDefinition } from '@grpc/proto-loader';

import type { AgentHubClient as _muster_v1_AgentHubClient, AgentHubDefinition as _muster_v1_AgentHubDefinition } from './muster/v1/AgentHub.ts';
import type { AgentMessage as _muster_v1_AgentMessage, AgentMessage__Output as _muster_v1_AgentMessage__Output } from './muster/v1/AgentMessage.ts';
import type { ArrayPlace as _muster_v1_ArrayPlace, ArrayPlace__Output as _muster_v1_ArrayPlace__Output } from './muster/v1/ArrayPlace.ts';
import type { Assignment as _muster_v1_Assignment, Assignment__Output as _muster_v1_Assignment__Output } from './muster/v1/Assignment.ts';
import type { Attempt as _muster_v1_Attempt, Attempt__Output as _muster_v1_Attempt__Output } from './muster/v1/Attempt.ts';
import type { AttemptSign as _muster_v1_AttemptSign, AttemptSign__Output as _muster_v1_AttemptSign__Output } from './muster/v1/AttemptSign.ts';
import type { Beat as _muster_v1_Beat, Beat__Output as _muster_v1_Beat__Output } from './muster/v1/Beat.ts';
import type { Cause as _muster_v1_Cause, Cause__Output as _muster_v1_Cause__Output } from './muster/v1/Cause.ts';
import type { Check as _muster_v1_Check, Check__Output as _muster_v1_Check__Output } from './muster/v1/Check.ts';
import type { Checked as _muster_v1_Checked, Checked__Output as _muster_v1_Checked__Output } from './muster/v1/Checked.ts';
import type { Checkpoint as _muster_v1_Checkpoint, Checkpoint__Output as _muster_v1_Checkpoint__Output } from './muster/v1/Checkpoint.ts';
import type { CheckpointEvaluation as _muster_v1_CheckpointEvaluation, CheckpointEvaluation__Output as _muster_v1_CheckpointEvaluation__Output } from './muster/v1/CheckpointEvaluation.ts';
import type { CheckpointIdentity as _muster_v1_CheckpointIdentity, CheckpointIdentity__Output as _muster_v1_CheckpointIdentity__Output } from './muster/v1/CheckpointIdentity.ts';
import type { CheckpointLook as _muster_v1_CheckpointLook, CheckpointLook__Output as _muster_v1_CheckpointLook__Output } from './muster/v1/CheckpointLook.ts';
import type { CheckpointSeen as _muster_v1_CheckpointSeen, CheckpointSeen__Output as _muster_v1_CheckpointSeen__Output } from './muster/v1/CheckpointSeen.ts';
import type { CheckpointVersion as _muster_v1_CheckpointVersion, CheckpointVersion__Output as _muster_v1_CheckpointVersion__Output } from './muster/v1/CheckpointVersion.ts';
import type { ChosenResume as _muster_v1_ChosenResume, ChosenResume__Output as _muster_v1_ChosenResume__Output } from './muster/v1/ChosenResume.ts';
import type { ClearCondition as _muster_v1_ClearCondition, ClearCondition__Output as _muster_v1_ClearCondition__Output } from './muster/v1/ClearCondition.ts';
import type { Condition as _muster_v1_Condition, Condition__Output as _muster_v1_Condition__Output } from './muster/v1/Condition.ts';
import type { Continuity as _muster_v1_Continuity, Continuity__Output as _muster_v1_Continuity__Output } from './muster/v1/Continuity.ts';
import type { CoordinatorMessage as _muster_v1_CoordinatorMessage, CoordinatorMessage__Output as _muster_v1_CoordinatorMessage__Output } from './muster/v1/CoordinatorMessage.ts';
import type { CorruptCheckpoint as _muster_v1_CorruptCheckpoint, CorruptCheckpoint__Output as _muster_v1_CorruptCheckpoint__Output } from './muster/v1/CorruptCheckpoint.ts';
import type { CredentialKept as _muster_v1_CredentialKept, CredentialKept__Output as _muster_v1_CredentialKept__Output } from './muster/v1/CredentialKept.ts';
import type { CredentialOffer as _muster_v1_CredentialOffer, CredentialOffer__Output as _muster_v1_CredentialOffer__Output } from './muster/v1/CredentialOffer.ts';
import type { CredentialTaken as _muster_v1_CredentialTaken, CredentialTaken__Output as _muster_v1_CredentialTaken__Output } from './muster/v1/CredentialTaken.ts';
import type { DeviceLink as _muster_v1_DeviceLink, DeviceLink__Output as _muster_v1_DeviceLink__Output } from './muster/v1/DeviceLink.ts';
import type { Drain as _muster_v1_Drain, Drain__Output as _muster_v1_Drain__Output } from './muster/v1/Drain.ts';
import type { Endpoint as _muster_v1_Endpoint, Endpoint__Output as _muster_v1_Endpoint__Output } from './muster/v1/Endpoint.ts';
import type { Event as _muster_v1_Event, Event__Output as _muster_v1_Event__Output } from './muster/v1/Event.ts';
import type { Evidence as _muster_v1_Evidence, Evidence__Output as _muster_v1_Evidence__Output } from './muster/v1/Evidence.ts';
import type { ExcludedNode as _muster_v1_ExcludedNode, ExcludedNode__Output as _muster_v1_ExcludedNode__Output } from './muster/v1/ExcludedNode.ts';
import type { FileSystem as _muster_v1_FileSystem, FileSystem__Output as _muster_v1_FileSystem__Output } from './muster/v1/FileSystem.ts';
import type { Forget as _muster_v1_Forget, Forget__Output as _muster_v1_Forget__Output } from './muster/v1/Forget.ts';
import type { FoundCheckpoint as _muster_v1_FoundCheckpoint, FoundCheckpoint__Output as _muster_v1_FoundCheckpoint__Output } from './muster/v1/FoundCheckpoint.ts';
import type { Gpu as _muster_v1_Gpu, Gpu__Output as _muster_v1_Gpu__Output } from './muster/v1/Gpu.ts';
import type { GpuDriver as _muster_v1_GpuDriver, GpuDriver__Output as _muster_v1_GpuDriver__Output } from './muster/v1/GpuDriver.ts';
import type { GpuReading as _muster_v1_GpuReading, GpuReading__Output as _muster_v1_GpuReading__Output } from './muster/v1/GpuReading.ts';
import type { GpuUsage as _muster_v1_GpuUsage, GpuUsage__Output as _muster_v1_GpuUsage__Output } from './muster/v1/GpuUsage.ts';
import type { GpuUse as _muster_v1_GpuUse, GpuUse__Output as _muster_v1_GpuUse__Output } from './muster/v1/GpuUse.ts';
import type { HangSign as _muster_v1_HangSign, HangSign__Output as _muster_v1_HangSign__Output } from './muster/v1/HangSign.ts';
import type { Heartbeat as _muster_v1_Heartbeat, Heartbeat__Output as _muster_v1_Heartbeat__Output } from './muster/v1/Heartbeat.ts';
import type { HeartbeatAck as _muster_v1_HeartbeatAck, HeartbeatAck__Output as _muster_v1_HeartbeatAck__Output } from './muster/v1/HeartbeatAck.ts';
import type { Hello as _muster_v1_Hello, Hello__Output as _muster_v1_Hello__Output } from './muster/v1/Hello.ts';
import type { HostFacts as _muster_v1_HostFacts, HostFacts__Output as _muster_v1_HostFacts__Output } from './muster/v1/HostFacts.ts';
import type { HostReading as _muster_v1_HostReading, HostReading__Output as _muster_v1_HostReading__Output } from './muster/v1/HostReading.ts';
import type { Job as _muster_v1_Job, Job__Output as _muster_v1_Job__Output } from './muster/v1/Job.ts';
import type { JobPhase as _muster_v1_JobPhase, JobPhase__Output as _muster_v1_JobPhase__Output } from './muster/v1/JobPhase.ts';
import type { JobPhases as _muster_v1_JobPhases, JobPhases__Output as _muster_v1_JobPhases__Output } from './muster/v1/JobPhases.ts';
import type { JoinRequest as _muster_v1_JoinRequest, JoinRequest__Output as _muster_v1_JoinRequest__Output } from './muster/v1/JoinRequest.ts';
import type { JoinResponse as _muster_v1_JoinResponse, JoinResponse__Output as _muster_v1_JoinResponse__Output } from './muster/v1/JoinResponse.ts';
import type { KeepCheckpoints as _muster_v1_KeepCheckpoints, KeepCheckpoints__Output as _muster_v1_KeepCheckpoints__Output } from './muster/v1/KeepCheckpoints.ts';
import type { LedgerEntry as _muster_v1_LedgerEntry, LedgerEntry__Output as _muster_v1_LedgerEntry__Output } from './muster/v1/LedgerEntry.ts';
import type { LogUpload as _muster_v1_LogUpload, LogUpload__Output as _muster_v1_LogUpload__Output } from './muster/v1/LogUpload.ts';
import type { LogUploadAck as _muster_v1_LogUploadAck, LogUploadAck__Output as _muster_v1_LogUploadAck__Output } from './muster/v1/LogUploadAck.ts';
import type { LookOrder as _muster_v1_LookOrder, LookOrder__Output as _muster_v1_LookOrder__Output } from './muster/v1/LookOrder.ts';
import type { MachineDisk as _muster_v1_MachineDisk, MachineDisk__Output as _muster_v1_MachineDisk__Output } from './muster/v1/MachineDisk.ts';
import type { MachineFacts as _muster_v1_MachineFacts, MachineFacts__Output as _muster_v1_MachineFacts__Output } from './muster/v1/MachineFacts.ts';
import type { Master as _muster_v1_Master, Master__Output as _muster_v1_Master__Output } from './muster/v1/Master.ts';
import type { MemoryModule as _muster_v1_MemoryModule, MemoryModule__Output as _muster_v1_MemoryModule__Output } from './muster/v1/MemoryModule.ts';
import type { MetricsPage as _muster_v1_MetricsPage, MetricsPage__Output as _muster_v1_MetricsPage__Output } from './muster/v1/MetricsPage.ts';
import type { MigInstance as _muster_v1_MigInstance, MigInstance__Output as _muster_v1_MigInstance__Output } from './muster/v1/MigInstance.ts';
import type { NextToken as _muster_v1_NextToken, NextToken__Output as _muster_v1_NextToken__Output } from './muster/v1/NextToken.ts';
import type { Nic as _muster_v1_Nic, Nic__Output as _muster_v1_Nic__Output } from './muster/v1/Nic.ts';
import type { Node as _muster_v1_Node, Node__Output as _muster_v1_Node__Output } from './muster/v1/Node.ts';
import type { NodeInventory as _muster_v1_NodeInventory, NodeInventory__Output as _muster_v1_NodeInventory__Output } from './muster/v1/NodeInventory.ts';
import type { NodeStatus as _muster_v1_NodeStatus, NodeStatus__Output as _muster_v1_NodeStatus__Output } from './muster/v1/NodeStatus.ts';
import type { NodeTask as _muster_v1_NodeTask, NodeTask__Output as _muster_v1_NodeTask__Output } from './muster/v1/NodeTask.ts';
import type { OrphanTask as _muster_v1_OrphanTask, OrphanTask__Output as _muster_v1_OrphanTask__Output } from './muster/v1/OrphanTask.ts';
import type { PairBandwidth as _muster_v1_PairBandwidth, PairBandwidth__Output as _muster_v1_PairBandwidth__Output } from './muster/v1/PairBandwidth.ts';
import type { PathBandwidth as _muster_v1_PathBandwidth, PathBandwidth__Output as _muster_v1_PathBandwidth__Output } from './muster/v1/PathBandwidth.ts';
import type { PathCheck as _muster_v1_PathCheck, PathCheck__Output as _muster_v1_PathCheck__Output } from './muster/v1/PathCheck.ts';
import type { PathFindings as _muster_v1_PathFindings, PathFindings__Output as _muster_v1_PathFindings__Output } from './muster/v1/PathFindings.ts';
import type { PathResult as _muster_v1_PathResult, PathResult__Output as _muster_v1_PathResult__Output } from './muster/v1/PathResult.ts';
import type { Peer as _muster_v1_Peer, Peer__Output as _muster_v1_Peer__Output } from './muster/v1/Peer.ts';
import type { PendingReason as _muster_v1_PendingReason, PendingReason__Output as _muster_v1_PendingReason__Output } from './muster/v1/PendingReason.ts';
import type { Preflight as _muster_v1_Preflight, Preflight__Output as _muster_v1_Preflight__Output } from './muster/v1/Preflight.ts';
import type { PreflightResult as _muster_v1_PreflightResult, PreflightResult__Output as _muster_v1_PreflightResult__Output } from './muster/v1/PreflightResult.ts';
import type { Prepared as _muster_v1_Prepared, Prepared__Output as _muster_v1_Prepared__Output } from './muster/v1/Prepared.ts';
import type { RdmaDevice as _muster_v1_RdmaDevice, RdmaDevice__Output as _muster_v1_RdmaDevice__Output } from './muster/v1/RdmaDevice.ts';
import type { ReadSecretsRequest as _muster_v1_ReadSecretsRequest, ReadSecretsRequest__Output as _muster_v1_ReadSecretsRequest__Output } from './muster/v1/ReadSecretsRequest.ts';
import type { ReadSecretsResponse as _muster_v1_ReadSecretsResponse, ReadSecretsResponse__Output as _muster_v1_ReadSecretsResponse__Output } from './muster/v1/ReadSecretsResponse.ts';
import type { ReceivedRows as _muster_v1_ReceivedRows, ReceivedRows__Output as _muster_v1_ReceivedRows__Output } from './muster/v1/ReceivedRows.ts';
import type { RenewCredential as _muster_v1_RenewCredential, RenewCredential__Output as _muster_v1_RenewCredential__Output } from './muster/v1/RenewCredential.ts';
import type { Resume as _muster_v1_Resume, Resume__Output as _muster_v1_Resume__Output } from './muster/v1/Resume.ts';
import type { ResumedFrom as _muster_v1_ResumedFrom, ResumedFrom__Output as _muster_v1_ResumedFrom__Output } from './muster/v1/ResumedFrom.ts';
import type { RowUpload as _muster_v1_RowUpload, RowUpload__Output as _muster_v1_RowUpload__Output } from './muster/v1/RowUpload.ts';
import type { RowUploadAck as _muster_v1_RowUploadAck, RowUploadAck__Output as _muster_v1_RowUploadAck__Output } from './muster/v1/RowUploadAck.ts';
import type { SecretValue as _muster_v1_SecretValue, SecretValue__Output as _muster_v1_SecretValue__Output } from './muster/v1/SecretValue.ts';
import type { Start as _muster_v1_Start, Start__Output as _muster_v1_Start__Output } from './muster/v1/Start.ts';
import type { Stop as _muster_v1_Stop, Stop__Output as _muster_v1_Stop__Output } from './muster/v1/Stop.ts';
import type { StoredArtifact as _muster_v1_StoredArtifact, StoredArtifact__Output as _muster_v1_StoredArtifact__Output } from './muster/v1/StoredArtifact.ts';
import type { Task as _muster_v1_Task, Task__Output as _muster_v1_Task__Output } from './muster/v1/Task.ts';
import type { TaskExit as _muster_v1_TaskExit, TaskExit__Output as _muster_v1_TaskExit__Output } from './muster/v1/TaskExit.ts';
import type { TaskFailure as _muster_v1_TaskFailure, TaskFailure__Output as _muster_v1_TaskFailure__Output } from './muster/v1/TaskFailure.ts';
import type { TaskProof as _muster_v1_TaskProof, TaskProof__Output as _muster_v1_TaskProof__Output } from './muster/v1/TaskProof.ts';
import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from './muster/v1/TaskRef.ts';
import type { TaskReport as _muster_v1_TaskReport, TaskReport__Output as _muster_v1_TaskReport__Output } from './muster/v1/TaskReport.ts';
import type { TaskVerdict as _muster_v1_TaskVerdict, TaskVerdict__Output as _muster_v1_TaskVerdict__Output } from './muster/v1/TaskVerdict.ts';
import type { TelemetryRequest as _muster_v1_TelemetryRequest, TelemetryRequest__Output as _muster_v1_TelemetryRequest__Output } from './muster/v1/TelemetryRequest.ts';
import type { TelemetryUpload as _muster_v1_TelemetryUpload, TelemetryUpload__Output as _muster_v1_TelemetryUpload__Output } from './muster/v1/TelemetryUpload.ts';
import type { TokenKept as _muster_v1_TokenKept, TokenKept__Output as _muster_v1_TokenKept__Output } from './muster/v1/TokenKept.ts';
import type { TrainingProgress as _muster_v1_TrainingProgress, TrainingProgress__Output as _muster_v1_TrainingProgress__Output } from './muster/v1/TrainingProgress.ts';
import type { TrainingReading as _muster_v1_TrainingReading, TrainingReading__Output as _muster_v1_TrainingReading__Output } from './muster/v1/TrainingReading.ts';
import type { TrainingRow as _muster_v1_TrainingRow, TrainingRow__Output as _muster_v1_TrainingRow__Output } from './muster/v1/TrainingRow.ts';
import type { TrainingSign as _muster_v1_TrainingSign, TrainingSign__Output as _muster_v1_TrainingSign__Output } from './muster/v1/TrainingSign.ts';
import type { TrainingSignSeen as _muster_v1_TrainingSignSeen, TrainingSignSeen__Output as _muster_v1_TrainingSignSeen__Output } from './muster/v1/TrainingSignSeen.ts';
import type { ValueCount as _muster_v1_ValueCount, ValueCount__Output as _muster_v1_ValueCount__Output } from './muster/v1/ValueCount.ts';
import type { Welcome as _muster_v1_Welcome, Welcome__Output as _muster_v1_Welcome__Output } from './muster/v1/Welcome.ts';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  muster: {
    v1: {
      AgentHub: SubtypeConstructor<typeof grpc.Client, _muster_v1_AgentHubClient> & { service: _muster_v1_AgentHubDefinition }
      AgentMessage: MessageTypeDefinition<_muster_v1_AgentMessage, _muster_v1_AgentMessage__Output>
      ArrayPlace: MessageTypeDefinition<_muster_v1_ArrayPlace, _muster_v1_ArrayPlace__Output>
      Assignment: MessageTypeDefinition<_muster_v1_Assignment, _muster_v1_Assignment__Output>
      Attempt: MessageTypeDefinition<_muster_v1_Attempt, _muster_v1_Attempt__Output>
      AttemptSign: MessageTypeDefinition<_muster_v1_AttemptSign, _muster_v1_AttemptSign__Output>
      AttemptState: EnumTypeDefinition
      Beat: MessageTypeDefinition<_muster_v1_Beat, _muster_v1_Beat__Output>
      Cause: MessageTypeDefinition<_muster_v1_Cause, _muster_v1_Cause__Output>
      Check: MessageTypeDefinition<_muster_v1_Check, _muster_v1_Check__Output>
      Checked: MessageTypeDefinition<_muster_v1_Checked, _muster_v1_Checked__Output>
      Checkpoint: MessageTypeDefinition<_muster_v1_Checkpoint, _muster_v1_Checkpoint__Output>
      CheckpointEvaluation: MessageTypeDefinition<_muster_v1_CheckpointEvaluation, _muster_v1_CheckpointEvaluation__Output>
      CheckpointIdentity: MessageTypeDefinition<_muster_v1_CheckpointIdentity, _muster_v1_CheckpointIdentity__Output>
      CheckpointLook: MessageTypeDefinition<_muster_v1_CheckpointLook, _muster_v1_CheckpointLook__Output>
      CheckpointSeen: MessageTypeDefinition<_muster_v1_CheckpointSeen, _muster_v1_CheckpointSeen__Output>
      CheckpointVersion: MessageTypeDefinition<_muster_v1_CheckpointVersion, _muster_v1_CheckpointVersion__Output>
      ChosenResume: MessageTypeDefinition<_muster_v1_ChosenResume, _muster_v1_ChosenResume__Output>
      ClearCondition: MessageTypeDefinition<_muster_v1_ClearCondition, _muster_v1_ClearCondition__Output>
      Condition: MessageTypeDefinition<_muster_v1_Condition, _muster_v1_Condition__Output>
      Continuity: MessageTypeDefinition<_muster_v1_Continuity, _muster_v1_Continuity__Output>
      CoordinatorMessage: MessageTypeDefinition<_muster_v1_CoordinatorMessage, _muster_v1_CoordinatorMessage__Output>
      CorruptCheckpoint: MessageTypeDefinition<_muster_v1_CorruptCheckpoint, _muster_v1_CorruptCheckpoint__Output>
      CredentialKept: MessageTypeDefinition<_muster_v1_CredentialKept, _muster_v1_CredentialKept__Output>
      CredentialOffer: MessageTypeDefinition<_muster_v1_CredentialOffer, _muster_v1_CredentialOffer__Output>
      CredentialTaken: MessageTypeDefinition<_muster_v1_CredentialTaken, _muster_v1_CredentialTaken__Output>
      DeviceLink: MessageTypeDefinition<_muster_v1_DeviceLink, _muster_v1_DeviceLink__Output>
      Drain: MessageTypeDefinition<_muster_v1_Drain, _muster_v1_Drain__Output>
      Endpoint: MessageTypeDefinition<_muster_v1_Endpoint, _muster_v1_Endpoint__Output>
      Event: MessageTypeDefinition<_muster_v1_Event, _muster_v1_Event__Output>
      Evidence: MessageTypeDefinition<_muster_v1_Evidence, _muster_v1_Evidence__Output>
      ExcludedNode: MessageTypeDefinition<_muster_v1_ExcludedNode, _muster_v1_ExcludedNode__Output>
      FileSystem: MessageTypeDefinition<_muster_v1_FileSystem, _muster_v1_FileSystem__Output>
      Forget: MessageTypeDefinition<_muster_v1_Forget, _muster_v1_Forget__Output>
      FoundCheckpoint: MessageTypeDefinition<_muster_v1_FoundCheckpoint, _muster_v1_FoundCheckpoint__Output>
      Gpu: MessageTypeDefinition<_muster_v1_Gpu, _muster_v1_Gpu__Output>
      GpuDriver: MessageTypeDefinition<_muster_v1_GpuDriver, _muster_v1_GpuDriver__Output>
      GpuReading: MessageTypeDefinition<_muster_v1_GpuReading, _muster_v1_GpuReading__Output>
      GpuUsage: MessageTypeDefinition<_muster_v1_GpuUsage, _muster_v1_GpuUsage__Output>
      GpuUse: MessageTypeDefinition<_muster_v1_GpuUse, _muster_v1_GpuUse__Output>
      HangSign: MessageTypeDefinition<_muster_v1_HangSign, _muster_v1_HangSign__Output>
      Heartbeat: MessageTypeDefinition<_muster_v1_Heartbeat, _muster_v1_Heartbeat__Output>
      HeartbeatAck: MessageTypeDefinition<_muster_v1_HeartbeatAck, _muster_v1_HeartbeatAck__Output>
      Hello: MessageTypeDefinition<_muster_v1_Hello, _muster_v1_Hello__Output>
      HostFacts: MessageTypeDefinition<_muster_v1_HostFacts, _muster_v1_HostFacts__Output>
      HostReading: MessageTypeDefinition<_muster_v1_HostReading, _muster_v1_HostReading__Output>
      Job: MessageTypeDefinition<_muster_v1_Job, _muster_v1_Job__Output>
      JobPhase: MessageTypeDefinition<_muster_v1_JobPhase, _muster_v1_JobPhase__Output>
      JobPhases: MessageTypeDefinition<_muster_v1_JobPhases, _muster_v1_JobPhases__Output>
      JobState: EnumTypeDefinition
      JoinRequest: MessageTypeDefinition<_muster_v1_JoinRequest, _muster_v1_JoinRequest__Output>
      JoinResponse: MessageTypeDefinition<_muster_v1_JoinResponse, _muster_v1_JoinResponse__Output>
      KeepCheckpoints: MessageTypeDefinition<_muster_v1_KeepCheckpoints, _muster_v1_KeepCheckpoints__Output>
      LedgerEntry: MessageTypeDefinition<_muster_v1_LedgerEntry, _muster_v1_LedgerEntry__Output>
      LogUpload: MessageTypeDefinition<_muster_v1_LogUpload, _muster_v1_LogUpload__Output>
      LogUploadAck: MessageTypeDefinition<_muster_v1_LogUploadAck, _muster_v1_LogUploadAck__Output>
      LookOrder: MessageTypeDefinition<_muster_v1_LookOrder, _muster_v1_LookOrder__Output>
      MachineDisk: MessageTypeDefinition<_muster_v1_MachineDisk, _muster_v1_MachineDisk__Output>
      MachineFacts: MessageTypeDefinition<_muster_v1_MachineFacts, _muster_v1_MachineFacts__Output>
      Master: MessageTypeDefinition<_muster_v1_Master, _muster_v1_Master__Output>
      MemoryModule: MessageTypeDefinition<_muster_v1_MemoryModule, _muster_v1_MemoryModule__Output>
      MetricsPage: MessageTypeDefinition<_muster_v1_MetricsPage, _muster_v1_MetricsPage__Output>
      MigInstance: MessageTypeDefinition<_muster_v1_MigInstance, _muster_v1_MigInstance__Output>
      NextToken: MessageTypeDefinition<_muster_v1_NextToken, _muster_v1_NextToken__Output>
      Nic: MessageTypeDefinition<_muster_v1_Nic, _muster_v1_Nic__Output>
      Node: MessageTypeDefinition<_muster_v1_Node, _muster_v1_Node__Output>
      NodeInventory: MessageTypeDefinition<_muster_v1_NodeInventory, _muster_v1_NodeInventory__Output>
      NodeState: EnumTypeDefinition
      NodeStatus: MessageTypeDefinition<_muster_v1_NodeStatus, _muster_v1_NodeStatus__Output>
      NodeTask: MessageTypeDefinition<_muster_v1_NodeTask, _muster_v1_NodeTask__Output>
      OrphanTask: MessageTypeDefinition<_muster_v1_OrphanTask, _muster_v1_OrphanTask__Output>
      PairBandwidth: MessageTypeDefinition<_muster_v1_PairBandwidth, _muster_v1_PairBandwidth__Output>
      PathBandwidth: MessageTypeDefinition<_muster_v1_PathBandwidth, _muster_v1_PathBandwidth__Output>
      PathCheck: MessageTypeDefinition<_muster_v1_PathCheck, _muster_v1_PathCheck__Output>
      PathFindings: MessageTypeDefinition<_muster_v1_PathFindings, _muster_v1_PathFindings__Output>
      PathResult: MessageTypeDefinition<_muster_v1_PathResult, _muster_v1_PathResult__Output>
      Peer: MessageTypeDefinition<_muster_v1_Peer, _muster_v1_Peer__Output>
      PendingReason: MessageTypeDefinition<_muster_v1_PendingReason, _muster_v1_PendingReason__Output>
      Preflight: MessageTypeDefinition<_muster_v1_Preflight, _muster_v1_Preflight__Output>
      PreflightResult: MessageTypeDefinition<_muster_v1_PreflightResult, _muster_v1_PreflightResult__Output>
      Prepared: MessageTypeDefinition<_muster_v1_Prepared, _muster_v1_Prepared__Output>
      RdmaDevice: MessageTypeDefinition<_muster_v1_RdmaDevice, _muster_v1_RdmaDevice__Output>
      ReadSecretsRequest: MessageTypeDefinition<_muster_v1_ReadSecretsRequest, _muster_v1_ReadSecretsRequest__Output>
      ReadSecretsResponse: MessageTypeDefinition<_muster_v1_ReadSecretsResponse, _muster_v1_ReadSecretsResponse__Output>
      ReceivedRows: MessageTypeDefinition<_muster_v1_ReceivedRows, _muster_v1_ReceivedRows__Output>
      RenewCredential: MessageTypeDefinition<_muster_v1_RenewCredential, _muster_v1_RenewCredential__Output>
      Resume: MessageTypeDefinition<_muster_v1_Resume, _muster_v1_Resume__Output>
      ResumedFrom: MessageTypeDefinition<_muster_v1_ResumedFrom, _muster_v1_ResumedFrom__Output>
      RowUpload: MessageTypeDefinition<_muster_v1_RowUpload, _muster_v1_RowUpload__Output>
      RowUploadAck: MessageTypeDefinition<_muster_v1_RowUploadAck, _muster_v1_RowUploadAck__Output>
      SecretValue: MessageTypeDefinition<_muster_v1_SecretValue, _muster_v1_SecretValue__Output>
      Start: MessageTypeDefinition<_muster_v1_Start, _muster_v1_Start__Output>
      Stop: MessageTypeDefinition<_muster_v1_Stop, _muster_v1_Stop__Output>
      StoredArtifact: MessageTypeDefinition<_muster_v1_StoredArtifact, _muster_v1_StoredArtifact__Output>
      Task: MessageTypeDefinition<_muster_v1_Task, _muster_v1_Task__Output>
      TaskExit: MessageTypeDefinition<_muster_v1_TaskExit, _muster_v1_TaskExit__Output>
      TaskFailure: MessageTypeDefinition<_muster_v1_TaskFailure, _muster_v1_TaskFailure__Output>
      TaskProof: MessageTypeDefinition<_muster_v1_TaskProof, _muster_v1_TaskProof__Output>
      TaskRef: MessageTypeDefinition<_muster_v1_TaskRef, _muster_v1_TaskRef__Output>
      TaskReport: MessageTypeDefinition<_muster_v1_TaskReport, _muster_v1_TaskReport__Output>
      TaskState: EnumTypeDefinition
      TaskVerdict: MessageTypeDefinition<_muster_v1_TaskVerdict, _muster_v1_TaskVerdict__Output>
      TelemetryRequest: MessageTypeDefinition<_muster_v1_TelemetryRequest, _muster_v1_TelemetryRequest__Output>
      TelemetryUpload: MessageTypeDefinition<_muster_v1_TelemetryUpload, _muster_v1_TelemetryUpload__Output>
      TokenKept: MessageTypeDefinition<_muster_v1_TokenKept, _muster_v1_TokenKept__Output>
      TrainingProgress: MessageTypeDefinition<_muster_v1_TrainingProgress, _muster_v1_TrainingProgress__Output>
      TrainingReading: MessageTypeDefinition<_muster_v1_TrainingReading, _muster_v1_TrainingReading__Output>
      TrainingRow: MessageTypeDefinition<_muster_v1_TrainingRow, _muster_v1_TrainingRow__Output>
      TrainingSign: MessageTypeDefinition<_muster_v1_TrainingSign, _muster_v1_TrainingSign__Output>
      TrainingSignSeen: MessageTypeDefinition<_muster_v1_TrainingSignSeen, _muster_v1_TrainingSignSeen__Output>
      ValueCount: MessageTypeDefinition<_muster_v1_ValueCount, _muster_v1_ValueCount__Output>
      Welcome: MessageTypeDefinition<_muster_v1_Welcome, _muster_v1_Welcome__Output>
    }
  }
}

