import type * as grpc from '@grpc/grpc-js';
import type { EnumTypeDefinition, MessageTypeDefinition } from '@grpc/proto-loader';

import type { AcceptClockRequest as _muster_v1_AcceptClockRequest, AcceptClockRequest__Output as _muster_v1_AcceptClockRequest__Output } from './muster/v1/AcceptClockRequest.ts';
import type { AcknowledgeAlertRequest as _muster_v1_AcknowledgeAlertRequest, AcknowledgeAlertRequest__Output as _muster_v1_AcknowledgeAlertRequest__Output } from './muster/v1/AcknowledgeAlertRequest.ts';
import type { AddUserRequest as _muster_v1_AddUserRequest, AddUserRequest__Output as _muster_v1_AddUserRequest__Output } from './muster/v1/AddUserRequest.ts';
import type { AdvanceStoreRequest as _muster_v1_AdvanceStoreRequest, AdvanceStoreRequest__Output as _muster_v1_AdvanceStoreRequest__Output } from './muster/v1/AdvanceStoreRequest.ts';
import type { Advice as _muster_v1_Advice, Advice__Output as _muster_v1_Advice__Output } from './muster/v1/Advice.ts';
import type { AdviseRequest as _muster_v1_AdviseRequest, AdviseRequest__Output as _muster_v1_AdviseRequest__Output } from './muster/v1/AdviseRequest.ts';
import type { Alert as _muster_v1_Alert, Alert__Output as _muster_v1_Alert__Output } from './muster/v1/Alert.ts';
import type { AlertEpisode as _muster_v1_AlertEpisode, AlertEpisode__Output as _muster_v1_AlertEpisode__Output } from './muster/v1/AlertEpisode.ts';
import type { AlertScope as _muster_v1_AlertScope, AlertScope__Output as _muster_v1_AlertScope__Output } from './muster/v1/AlertScope.ts';
import type { AlertSilence as _muster_v1_AlertSilence, AlertSilence__Output as _muster_v1_AlertSilence__Output } from './muster/v1/AlertSilence.ts';
import type { ArrayPlace as _muster_v1_ArrayPlace, ArrayPlace__Output as _muster_v1_ArrayPlace__Output } from './muster/v1/ArrayPlace.ts';
import type { Artifact as _muster_v1_Artifact, Artifact__Output as _muster_v1_Artifact__Output } from './muster/v1/Artifact.ts';
import type { Attempt as _muster_v1_Attempt, Attempt__Output as _muster_v1_Attempt__Output } from './muster/v1/Attempt.ts';
import type { AttemptSign as _muster_v1_AttemptSign, AttemptSign__Output as _muster_v1_AttemptSign__Output } from './muster/v1/AttemptSign.ts';
import type { BackupPiece as _muster_v1_BackupPiece, BackupPiece__Output as _muster_v1_BackupPiece__Output } from './muster/v1/BackupPiece.ts';
import type { BackupStoreRequest as _muster_v1_BackupStoreRequest, BackupStoreRequest__Output as _muster_v1_BackupStoreRequest__Output } from './muster/v1/BackupStoreRequest.ts';
import type { BudgetUse as _muster_v1_BudgetUse, BudgetUse__Output as _muster_v1_BudgetUse__Output } from './muster/v1/BudgetUse.ts';
import type { Caller as _muster_v1_Caller, Caller__Output as _muster_v1_Caller__Output } from './muster/v1/Caller.ts';
import type { Cause as _muster_v1_Cause, Cause__Output as _muster_v1_Cause__Output } from './muster/v1/Cause.ts';
import type { CertificateEnd as _muster_v1_CertificateEnd, CertificateEnd__Output as _muster_v1_CertificateEnd__Output } from './muster/v1/CertificateEnd.ts';
import type { ChangeUserRequest as _muster_v1_ChangeUserRequest, ChangeUserRequest__Output as _muster_v1_ChangeUserRequest__Output } from './muster/v1/ChangeUserRequest.ts';
import type { Checkpoint as _muster_v1_Checkpoint, Checkpoint__Output as _muster_v1_Checkpoint__Output } from './muster/v1/Checkpoint.ts';
import type { CheckpointEvaluation as _muster_v1_CheckpointEvaluation, CheckpointEvaluation__Output as _muster_v1_CheckpointEvaluation__Output } from './muster/v1/CheckpointEvaluation.ts';
import type { ClearConditionRequest as _muster_v1_ClearConditionRequest, ClearConditionRequest__Output as _muster_v1_ClearConditionRequest__Output } from './muster/v1/ClearConditionRequest.ts';
import type { Cluster as _muster_v1_Cluster, Cluster__Output as _muster_v1_Cluster__Output } from './muster/v1/Cluster.ts';
import type { Condition as _muster_v1_Condition, Condition__Output as _muster_v1_Condition__Output } from './muster/v1/Condition.ts';
import type { ConfirmDeadRequest as _muster_v1_ConfirmDeadRequest, ConfirmDeadRequest__Output as _muster_v1_ConfirmDeadRequest__Output } from './muster/v1/ConfirmDeadRequest.ts';
import type { CoordinatorClock as _muster_v1_CoordinatorClock, CoordinatorClock__Output as _muster_v1_CoordinatorClock__Output } from './muster/v1/CoordinatorClock.ts';
import type { CreateAlertRequest as _muster_v1_CreateAlertRequest, CreateAlertRequest__Output as _muster_v1_CreateAlertRequest__Output } from './muster/v1/CreateAlertRequest.ts';
import type { CreateJoinTokenRequest as _muster_v1_CreateJoinTokenRequest, CreateJoinTokenRequest__Output as _muster_v1_CreateJoinTokenRequest__Output } from './muster/v1/CreateJoinTokenRequest.ts';
import type { CreateJoinTokenResponse as _muster_v1_CreateJoinTokenResponse, CreateJoinTokenResponse__Output as _muster_v1_CreateJoinTokenResponse__Output } from './muster/v1/CreateJoinTokenResponse.ts';
import type { CreateLoginCodeRequest as _muster_v1_CreateLoginCodeRequest, CreateLoginCodeRequest__Output as _muster_v1_CreateLoginCodeRequest__Output } from './muster/v1/CreateLoginCodeRequest.ts';
import type { CreateSweepRequest as _muster_v1_CreateSweepRequest, CreateSweepRequest__Output as _muster_v1_CreateSweepRequest__Output } from './muster/v1/CreateSweepRequest.ts';
import type { CreateTriggerRequest as _muster_v1_CreateTriggerRequest, CreateTriggerRequest__Output as _muster_v1_CreateTriggerRequest__Output } from './muster/v1/CreateTriggerRequest.ts';
import type { CreateUserTokenRequest as _muster_v1_CreateUserTokenRequest, CreateUserTokenRequest__Output as _muster_v1_CreateUserTokenRequest__Output } from './muster/v1/CreateUserTokenRequest.ts';
import type { Credential as _muster_v1_Credential, Credential__Output as _muster_v1_Credential__Output } from './muster/v1/Credential.ts';
import type { DeleteAlertRequest as _muster_v1_DeleteAlertRequest, DeleteAlertRequest__Output as _muster_v1_DeleteAlertRequest__Output } from './muster/v1/DeleteAlertRequest.ts';
import type { DeleteTriggerRequest as _muster_v1_DeleteTriggerRequest, DeleteTriggerRequest__Output as _muster_v1_DeleteTriggerRequest__Output } from './muster/v1/DeleteTriggerRequest.ts';
import type { DeviceLink as _muster_v1_DeviceLink, DeviceLink__Output as _muster_v1_DeviceLink__Output } from './muster/v1/DeviceLink.ts';
import type { DiskPart as _muster_v1_DiskPart, DiskPart__Output as _muster_v1_DiskPart__Output } from './muster/v1/DiskPart.ts';
import type { Drain as _muster_v1_Drain, Drain__Output as _muster_v1_Drain__Output } from './muster/v1/Drain.ts';
import type { DrainNodeRequest as _muster_v1_DrainNodeRequest, DrainNodeRequest__Output as _muster_v1_DrainNodeRequest__Output } from './muster/v1/DrainNodeRequest.ts';
import type { EndOrphansRequest as _muster_v1_EndOrphansRequest, EndOrphansRequest__Output as _muster_v1_EndOrphansRequest__Output } from './muster/v1/EndOrphansRequest.ts';
import type { Event as _muster_v1_Event, Event__Output as _muster_v1_Event__Output } from './muster/v1/Event.ts';
import type { Evidence as _muster_v1_Evidence, Evidence__Output as _muster_v1_Evidence__Output } from './muster/v1/Evidence.ts';
import type { ExcludedNode as _muster_v1_ExcludedNode, ExcludedNode__Output as _muster_v1_ExcludedNode__Output } from './muster/v1/ExcludedNode.ts';
import type { ExplainJobRequest as _muster_v1_ExplainJobRequest, ExplainJobRequest__Output as _muster_v1_ExplainJobRequest__Output } from './muster/v1/ExplainJobRequest.ts';
import type { ExplainJobResponse as _muster_v1_ExplainJobResponse, ExplainJobResponse__Output as _muster_v1_ExplainJobResponse__Output } from './muster/v1/ExplainJobResponse.ts';
import type { ExtendJobRequest as _muster_v1_ExtendJobRequest, ExtendJobRequest__Output as _muster_v1_ExtendJobRequest__Output } from './muster/v1/ExtendJobRequest.ts';
import type { ExtendSweepRequest as _muster_v1_ExtendSweepRequest, ExtendSweepRequest__Output as _muster_v1_ExtendSweepRequest__Output } from './muster/v1/ExtendSweepRequest.ts';
import type { FileSystem as _muster_v1_FileSystem, FileSystem__Output as _muster_v1_FileSystem__Output } from './muster/v1/FileSystem.ts';
import type { FileSystemSpace as _muster_v1_FileSystemSpace, FileSystemSpace__Output as _muster_v1_FileSystemSpace__Output } from './muster/v1/FileSystemSpace.ts';
import type { GetCallerRequest as _muster_v1_GetCallerRequest, GetCallerRequest__Output as _muster_v1_GetCallerRequest__Output } from './muster/v1/GetCallerRequest.ts';
import type { GetClockRequest as _muster_v1_GetClockRequest, GetClockRequest__Output as _muster_v1_GetClockRequest__Output } from './muster/v1/GetClockRequest.ts';
import type { GetClusterRequest as _muster_v1_GetClusterRequest, GetClusterRequest__Output as _muster_v1_GetClusterRequest__Output } from './muster/v1/GetClusterRequest.ts';
import type { GetJobRequest as _muster_v1_GetJobRequest, GetJobRequest__Output as _muster_v1_GetJobRequest__Output } from './muster/v1/GetJobRequest.ts';
import type { GetLineageRequest as _muster_v1_GetLineageRequest, GetLineageRequest__Output as _muster_v1_GetLineageRequest__Output } from './muster/v1/GetLineageRequest.ts';
import type { GetLoginMethodRequest as _muster_v1_GetLoginMethodRequest, GetLoginMethodRequest__Output as _muster_v1_GetLoginMethodRequest__Output } from './muster/v1/GetLoginMethodRequest.ts';
import type { GetNodeRequest as _muster_v1_GetNodeRequest, GetNodeRequest__Output as _muster_v1_GetNodeRequest__Output } from './muster/v1/GetNodeRequest.ts';
import type { GetPipelineRequest as _muster_v1_GetPipelineRequest, GetPipelineRequest__Output as _muster_v1_GetPipelineRequest__Output } from './muster/v1/GetPipelineRequest.ts';
import type { GetSweepRequest as _muster_v1_GetSweepRequest, GetSweepRequest__Output as _muster_v1_GetSweepRequest__Output } from './muster/v1/GetSweepRequest.ts';
import type { GetTrainingStatusRequest as _muster_v1_GetTrainingStatusRequest, GetTrainingStatusRequest__Output as _muster_v1_GetTrainingStatusRequest__Output } from './muster/v1/GetTrainingStatusRequest.ts';
import type { GetTriggerRequest as _muster_v1_GetTriggerRequest, GetTriggerRequest__Output as _muster_v1_GetTriggerRequest__Output } from './muster/v1/GetTriggerRequest.ts';
import type { GetUpkeepRequest as _muster_v1_GetUpkeepRequest, GetUpkeepRequest__Output as _muster_v1_GetUpkeepRequest__Output } from './muster/v1/GetUpkeepRequest.ts';
import type { Gpu as _muster_v1_Gpu, Gpu__Output as _muster_v1_Gpu__Output } from './muster/v1/Gpu.ts';
import type { GpuDriver as _muster_v1_GpuDriver, GpuDriver__Output as _muster_v1_GpuDriver__Output } from './muster/v1/GpuDriver.ts';
import type { GpuReading as _muster_v1_GpuReading, GpuReading__Output as _muster_v1_GpuReading__Output } from './muster/v1/GpuReading.ts';
import type { GpuUsage as _muster_v1_GpuUsage, GpuUsage__Output as _muster_v1_GpuUsage__Output } from './muster/v1/GpuUsage.ts';
import type { GpuUse as _muster_v1_GpuUse, GpuUse__Output as _muster_v1_GpuUse__Output } from './muster/v1/GpuUse.ts';
import type { HangSign as _muster_v1_HangSign, HangSign__Output as _muster_v1_HangSign__Output } from './muster/v1/HangSign.ts';
import type { HostFacts as _muster_v1_HostFacts, HostFacts__Output as _muster_v1_HostFacts__Output } from './muster/v1/HostFacts.ts';
import type { HostReading as _muster_v1_HostReading, HostReading__Output as _muster_v1_HostReading__Output } from './muster/v1/HostReading.ts';
import type { Job as _muster_v1_Job, Job__Output as _muster_v1_Job__Output } from './muster/v1/Job.ts';
import type { JobArray as _muster_v1_JobArray, JobArray__Output as _muster_v1_JobArray__Output } from './muster/v1/JobArray.ts';
import type { JobPhase as _muster_v1_JobPhase, JobPhase__Output as _muster_v1_JobPhase__Output } from './muster/v1/JobPhase.ts';
import type { JobPhases as _muster_v1_JobPhases, JobPhases__Output as _muster_v1_JobPhases__Output } from './muster/v1/JobPhases.ts';
import type { LedgerEntry as _muster_v1_LedgerEntry, LedgerEntry__Output as _muster_v1_LedgerEntry__Output } from './muster/v1/LedgerEntry.ts';
import type { Lineage as _muster_v1_Lineage, Lineage__Output as _muster_v1_Lineage__Output } from './muster/v1/Lineage.ts';
import type { LineageStep as _muster_v1_LineageStep, LineageStep__Output as _muster_v1_LineageStep__Output } from './muster/v1/LineageStep.ts';
import type { ListAlertsRequest as _muster_v1_ListAlertsRequest, ListAlertsRequest__Output as _muster_v1_ListAlertsRequest__Output } from './muster/v1/ListAlertsRequest.ts';
import type { ListAlertsResponse as _muster_v1_ListAlertsResponse, ListAlertsResponse__Output as _muster_v1_ListAlertsResponse__Output } from './muster/v1/ListAlertsResponse.ts';
import type { ListCredentialsRequest as _muster_v1_ListCredentialsRequest, ListCredentialsRequest__Output as _muster_v1_ListCredentialsRequest__Output } from './muster/v1/ListCredentialsRequest.ts';
import type { ListCredentialsResponse as _muster_v1_ListCredentialsResponse, ListCredentialsResponse__Output as _muster_v1_ListCredentialsResponse__Output } from './muster/v1/ListCredentialsResponse.ts';
import type { ListJobsRequest as _muster_v1_ListJobsRequest, ListJobsRequest__Output as _muster_v1_ListJobsRequest__Output } from './muster/v1/ListJobsRequest.ts';
import type { ListJobsResponse as _muster_v1_ListJobsResponse, ListJobsResponse__Output as _muster_v1_ListJobsResponse__Output } from './muster/v1/ListJobsResponse.ts';
import type { ListNodesRequest as _muster_v1_ListNodesRequest, ListNodesRequest__Output as _muster_v1_ListNodesRequest__Output } from './muster/v1/ListNodesRequest.ts';
import type { ListNodesResponse as _muster_v1_ListNodesResponse, ListNodesResponse__Output as _muster_v1_ListNodesResponse__Output } from './muster/v1/ListNodesResponse.ts';
import type { ListPipelinesRequest as _muster_v1_ListPipelinesRequest, ListPipelinesRequest__Output as _muster_v1_ListPipelinesRequest__Output } from './muster/v1/ListPipelinesRequest.ts';
import type { ListPipelinesResponse as _muster_v1_ListPipelinesResponse, ListPipelinesResponse__Output as _muster_v1_ListPipelinesResponse__Output } from './muster/v1/ListPipelinesResponse.ts';
import type { ListProjectsRequest as _muster_v1_ListProjectsRequest, ListProjectsRequest__Output as _muster_v1_ListProjectsRequest__Output } from './muster/v1/ListProjectsRequest.ts';
import type { ListProjectsResponse as _muster_v1_ListProjectsResponse, ListProjectsResponse__Output as _muster_v1_ListProjectsResponse__Output } from './muster/v1/ListProjectsResponse.ts';
import type { ListSecretsRequest as _muster_v1_ListSecretsRequest, ListSecretsRequest__Output as _muster_v1_ListSecretsRequest__Output } from './muster/v1/ListSecretsRequest.ts';
import type { ListSecretsResponse as _muster_v1_ListSecretsResponse, ListSecretsResponse__Output as _muster_v1_ListSecretsResponse__Output } from './muster/v1/ListSecretsResponse.ts';
import type { ListSweepsRequest as _muster_v1_ListSweepsRequest, ListSweepsRequest__Output as _muster_v1_ListSweepsRequest__Output } from './muster/v1/ListSweepsRequest.ts';
import type { ListSweepsResponse as _muster_v1_ListSweepsResponse, ListSweepsResponse__Output as _muster_v1_ListSweepsResponse__Output } from './muster/v1/ListSweepsResponse.ts';
import type { ListTelemetryRequest as _muster_v1_ListTelemetryRequest, ListTelemetryRequest__Output as _muster_v1_ListTelemetryRequest__Output } from './muster/v1/ListTelemetryRequest.ts';
import type { ListTelemetryResponse as _muster_v1_ListTelemetryResponse, ListTelemetryResponse__Output as _muster_v1_ListTelemetryResponse__Output } from './muster/v1/ListTelemetryResponse.ts';
import type { ListTrialsRequest as _muster_v1_ListTrialsRequest, ListTrialsRequest__Output as _muster_v1_ListTrialsRequest__Output } from './muster/v1/ListTrialsRequest.ts';
import type { ListTrialsResponse as _muster_v1_ListTrialsResponse, ListTrialsResponse__Output as _muster_v1_ListTrialsResponse__Output } from './muster/v1/ListTrialsResponse.ts';
import type { ListTriggersRequest as _muster_v1_ListTriggersRequest, ListTriggersRequest__Output as _muster_v1_ListTriggersRequest__Output } from './muster/v1/ListTriggersRequest.ts';
import type { ListTriggersResponse as _muster_v1_ListTriggersResponse, ListTriggersResponse__Output as _muster_v1_ListTriggersResponse__Output } from './muster/v1/ListTriggersResponse.ts';
import type { ListUsersRequest as _muster_v1_ListUsersRequest, ListUsersRequest__Output as _muster_v1_ListUsersRequest__Output } from './muster/v1/ListUsersRequest.ts';
import type { ListUsersResponse as _muster_v1_ListUsersResponse, ListUsersResponse__Output as _muster_v1_ListUsersResponse__Output } from './muster/v1/ListUsersResponse.ts';
import type { LogPiece as _muster_v1_LogPiece, LogPiece__Output as _muster_v1_LogPiece__Output } from './muster/v1/LogPiece.ts';
import type { LogPosition as _muster_v1_LogPosition, LogPosition__Output as _muster_v1_LogPosition__Output } from './muster/v1/LogPosition.ts';
import type { LoginCode as _muster_v1_LoginCode, LoginCode__Output as _muster_v1_LoginCode__Output } from './muster/v1/LoginCode.ts';
import type { LoginMethod as _muster_v1_LoginMethod, LoginMethod__Output as _muster_v1_LoginMethod__Output } from './muster/v1/LoginMethod.ts';
import type { LoginRequest as _muster_v1_LoginRequest, LoginRequest__Output as _muster_v1_LoginRequest__Output } from './muster/v1/LoginRequest.ts';
import type { LoginResponse as _muster_v1_LoginResponse, LoginResponse__Output as _muster_v1_LoginResponse__Output } from './muster/v1/LoginResponse.ts';
import type { LoginWithIdTokenRequest as _muster_v1_LoginWithIdTokenRequest, LoginWithIdTokenRequest__Output as _muster_v1_LoginWithIdTokenRequest__Output } from './muster/v1/LoginWithIdTokenRequest.ts';
import type { MachineDisk as _muster_v1_MachineDisk, MachineDisk__Output as _muster_v1_MachineDisk__Output } from './muster/v1/MachineDisk.ts';
import type { MachineFacts as _muster_v1_MachineFacts, MachineFacts__Output as _muster_v1_MachineFacts__Output } from './muster/v1/MachineFacts.ts';
import type { MemoryModule as _muster_v1_MemoryModule, MemoryModule__Output as _muster_v1_MemoryModule__Output } from './muster/v1/MemoryModule.ts';
import type { MetricBucket as _muster_v1_MetricBucket, MetricBucket__Output as _muster_v1_MetricBucket__Output } from './muster/v1/MetricBucket.ts';
import type { MetricOrigin as _muster_v1_MetricOrigin, MetricOrigin__Output as _muster_v1_MetricOrigin__Output } from './muster/v1/MetricOrigin.ts';
import type { MetricPoint as _muster_v1_MetricPoint, MetricPoint__Output as _muster_v1_MetricPoint__Output } from './muster/v1/MetricPoint.ts';
import type { MetricSeries as _muster_v1_MetricSeries, MetricSeries__Output as _muster_v1_MetricSeries__Output } from './muster/v1/MetricSeries.ts';
import type { MetricSource as _muster_v1_MetricSource, MetricSource__Output as _muster_v1_MetricSource__Output } from './muster/v1/MetricSource.ts';
import type { MetricUpdate as _muster_v1_MetricUpdate, MetricUpdate__Output as _muster_v1_MetricUpdate__Output } from './muster/v1/MetricUpdate.ts';
import type { MigInstance as _muster_v1_MigInstance, MigInstance__Output as _muster_v1_MigInstance__Output } from './muster/v1/MigInstance.ts';
import type { MissingOutput as _muster_v1_MissingOutput, MissingOutput__Output as _muster_v1_MissingOutput__Output } from './muster/v1/MissingOutput.ts';
import type { MusterClient as _muster_v1_MusterClient, MusterDefinition as _muster_v1_MusterDefinition } from './muster/v1/Muster.ts';
import type { Nic as _muster_v1_Nic, Nic__Output as _muster_v1_Nic__Output } from './muster/v1/Nic.ts';
import type { Node as _muster_v1_Node, Node__Output as _muster_v1_Node__Output } from './muster/v1/Node.ts';
import type { NodeInventory as _muster_v1_NodeInventory, NodeInventory__Output as _muster_v1_NodeInventory__Output } from './muster/v1/NodeInventory.ts';
import type { NodeTask as _muster_v1_NodeTask, NodeTask__Output as _muster_v1_NodeTask__Output } from './muster/v1/NodeTask.ts';
import type { NodeTelemetry as _muster_v1_NodeTelemetry, NodeTelemetry__Output as _muster_v1_NodeTelemetry__Output } from './muster/v1/NodeTelemetry.ts';
import type { OrphanTask as _muster_v1_OrphanTask, OrphanTask__Output as _muster_v1_OrphanTask__Output } from './muster/v1/OrphanTask.ts';
import type { PathBandwidth as _muster_v1_PathBandwidth, PathBandwidth__Output as _muster_v1_PathBandwidth__Output } from './muster/v1/PathBandwidth.ts';
import type { PauseTriggerRequest as _muster_v1_PauseTriggerRequest, PauseTriggerRequest__Output as _muster_v1_PauseTriggerRequest__Output } from './muster/v1/PauseTriggerRequest.ts';
import type { PendingReason as _muster_v1_PendingReason, PendingReason__Output as _muster_v1_PendingReason__Output } from './muster/v1/PendingReason.ts';
import type { PipelineRun as _muster_v1_PipelineRun, PipelineRun__Output as _muster_v1_PipelineRun__Output } from './muster/v1/PipelineRun.ts';
import type { PipelineStep as _muster_v1_PipelineStep, PipelineStep__Output as _muster_v1_PipelineStep__Output } from './muster/v1/PipelineStep.ts';
import type { Project as _muster_v1_Project, Project__Output as _muster_v1_Project__Output } from './muster/v1/Project.ts';
import type { QueryMetricsRequest as _muster_v1_QueryMetricsRequest, QueryMetricsRequest__Output as _muster_v1_QueryMetricsRequest__Output } from './muster/v1/QueryMetricsRequest.ts';
import type { QueryMetricsResponse as _muster_v1_QueryMetricsResponse, QueryMetricsResponse__Output as _muster_v1_QueryMetricsResponse__Output } from './muster/v1/QueryMetricsResponse.ts';
import type { RdmaDevice as _muster_v1_RdmaDevice, RdmaDevice__Output as _muster_v1_RdmaDevice__Output } from './muster/v1/RdmaDevice.ts';
import type { ReadLogsRequest as _muster_v1_ReadLogsRequest, ReadLogsRequest__Output as _muster_v1_ReadLogsRequest__Output } from './muster/v1/ReadLogsRequest.ts';
import type { RejoinNodeRequest as _muster_v1_RejoinNodeRequest, RejoinNodeRequest__Output as _muster_v1_RejoinNodeRequest__Output } from './muster/v1/RejoinNodeRequest.ts';
import type { RemoveLogsRequest as _muster_v1_RemoveLogsRequest, RemoveLogsRequest__Output as _muster_v1_RemoveLogsRequest__Output } from './muster/v1/RemoveLogsRequest.ts';
import type { RemoveLogsResponse as _muster_v1_RemoveLogsResponse, RemoveLogsResponse__Output as _muster_v1_RemoveLogsResponse__Output } from './muster/v1/RemoveLogsResponse.ts';
import type { RemoveNodeRequest as _muster_v1_RemoveNodeRequest, RemoveNodeRequest__Output as _muster_v1_RemoveNodeRequest__Output } from './muster/v1/RemoveNodeRequest.ts';
import type { RemoveNodeResponse as _muster_v1_RemoveNodeResponse, RemoveNodeResponse__Output as _muster_v1_RemoveNodeResponse__Output } from './muster/v1/RemoveNodeResponse.ts';
import type { RemoveSecretRequest as _muster_v1_RemoveSecretRequest, RemoveSecretRequest__Output as _muster_v1_RemoveSecretRequest__Output } from './muster/v1/RemoveSecretRequest.ts';
import type { RemoveUserRequest as _muster_v1_RemoveUserRequest, RemoveUserRequest__Output as _muster_v1_RemoveUserRequest__Output } from './muster/v1/RemoveUserRequest.ts';
import type { RemoveUserResponse as _muster_v1_RemoveUserResponse, RemoveUserResponse__Output as _muster_v1_RemoveUserResponse__Output } from './muster/v1/RemoveUserResponse.ts';
import type { RequeueJobRequest as _muster_v1_RequeueJobRequest, RequeueJobRequest__Output as _muster_v1_RequeueJobRequest__Output } from './muster/v1/RequeueJobRequest.ts';
import type { RequeueJobResponse as _muster_v1_RequeueJobResponse, RequeueJobResponse__Output as _muster_v1_RequeueJobResponse__Output } from './muster/v1/RequeueJobResponse.ts';
import type { RerunPipelineRequest as _muster_v1_RerunPipelineRequest, RerunPipelineRequest__Output as _muster_v1_RerunPipelineRequest__Output } from './muster/v1/RerunPipelineRequest.ts';
import type { ResolveJobRequest as _muster_v1_ResolveJobRequest, ResolveJobRequest__Output as _muster_v1_ResolveJobRequest__Output } from './muster/v1/ResolveJobRequest.ts';
import type { ResolveJobResponse as _muster_v1_ResolveJobResponse, ResolveJobResponse__Output as _muster_v1_ResolveJobResponse__Output } from './muster/v1/ResolveJobResponse.ts';
import type { Resume as _muster_v1_Resume, Resume__Output as _muster_v1_Resume__Output } from './muster/v1/Resume.ts';
import type { ResumeTriggerRequest as _muster_v1_ResumeTriggerRequest, ResumeTriggerRequest__Output as _muster_v1_ResumeTriggerRequest__Output } from './muster/v1/ResumeTriggerRequest.ts';
import type { ResumedFrom as _muster_v1_ResumedFrom, ResumedFrom__Output as _muster_v1_ResumedFrom__Output } from './muster/v1/ResumedFrom.ts';
import type { RevokeCredentialRequest as _muster_v1_RevokeCredentialRequest, RevokeCredentialRequest__Output as _muster_v1_RevokeCredentialRequest__Output } from './muster/v1/RevokeCredentialRequest.ts';
import type { RevokeCredentialResponse as _muster_v1_RevokeCredentialResponse, RevokeCredentialResponse__Output as _muster_v1_RevokeCredentialResponse__Output } from './muster/v1/RevokeCredentialResponse.ts';
import type { RotateAdminTokenRequest as _muster_v1_RotateAdminTokenRequest, RotateAdminTokenRequest__Output as _muster_v1_RotateAdminTokenRequest__Output } from './muster/v1/RotateAdminTokenRequest.ts';
import type { RotateAdminTokenResponse as _muster_v1_RotateAdminTokenResponse, RotateAdminTokenResponse__Output as _muster_v1_RotateAdminTokenResponse__Output } from './muster/v1/RotateAdminTokenResponse.ts';
import type { RotateSecretKeyRequest as _muster_v1_RotateSecretKeyRequest, RotateSecretKeyRequest__Output as _muster_v1_RotateSecretKeyRequest__Output } from './muster/v1/RotateSecretKeyRequest.ts';
import type { RotateSecretKeyResponse as _muster_v1_RotateSecretKeyResponse, RotateSecretKeyResponse__Output as _muster_v1_RotateSecretKeyResponse__Output } from './muster/v1/RotateSecretKeyResponse.ts';
import type { RotateUserTokenRequest as _muster_v1_RotateUserTokenRequest, RotateUserTokenRequest__Output as _muster_v1_RotateUserTokenRequest__Output } from './muster/v1/RotateUserTokenRequest.ts';
import type { RunPipelineRequest as _muster_v1_RunPipelineRequest, RunPipelineRequest__Output as _muster_v1_RunPipelineRequest__Output } from './muster/v1/RunPipelineRequest.ts';
import type { RunTriggerRequest as _muster_v1_RunTriggerRequest, RunTriggerRequest__Output as _muster_v1_RunTriggerRequest__Output } from './muster/v1/RunTriggerRequest.ts';
import type { Secret as _muster_v1_Secret, Secret__Output as _muster_v1_Secret__Output } from './muster/v1/Secret.ts';
import type { SeedRun as _muster_v1_SeedRun, SeedRun__Output as _muster_v1_SeedRun__Output } from './muster/v1/SeedRun.ts';
import type { SetMaintenanceRequest as _muster_v1_SetMaintenanceRequest, SetMaintenanceRequest__Output as _muster_v1_SetMaintenanceRequest__Output } from './muster/v1/SetMaintenanceRequest.ts';
import type { SetProjectRequest as _muster_v1_SetProjectRequest, SetProjectRequest__Output as _muster_v1_SetProjectRequest__Output } from './muster/v1/SetProjectRequest.ts';
import type { SetSecretRequest as _muster_v1_SetSecretRequest, SetSecretRequest__Output as _muster_v1_SetSecretRequest__Output } from './muster/v1/SetSecretRequest.ts';
import type { SilenceAlertRequest as _muster_v1_SilenceAlertRequest, SilenceAlertRequest__Output as _muster_v1_SilenceAlertRequest__Output } from './muster/v1/SilenceAlertRequest.ts';
import type { SpecProblem as _muster_v1_SpecProblem, SpecProblem__Output as _muster_v1_SpecProblem__Output } from './muster/v1/SpecProblem.ts';
import type { SpecProblems as _muster_v1_SpecProblems, SpecProblems__Output as _muster_v1_SpecProblems__Output } from './muster/v1/SpecProblems.ts';
import type { StopJobsRequest as _muster_v1_StopJobsRequest, StopJobsRequest__Output as _muster_v1_StopJobsRequest__Output } from './muster/v1/StopJobsRequest.ts';
import type { StopJobsResponse as _muster_v1_StopJobsResponse, StopJobsResponse__Output as _muster_v1_StopJobsResponse__Output } from './muster/v1/StopJobsResponse.ts';
import type { StopPipelineRequest as _muster_v1_StopPipelineRequest, StopPipelineRequest__Output as _muster_v1_StopPipelineRequest__Output } from './muster/v1/StopPipelineRequest.ts';
import type { StopSweepRequest as _muster_v1_StopSweepRequest, StopSweepRequest__Output as _muster_v1_StopSweepRequest__Output } from './muster/v1/StopSweepRequest.ts';
import type { StoredArtifact as _muster_v1_StoredArtifact, StoredArtifact__Output as _muster_v1_StoredArtifact__Output } from './muster/v1/StoredArtifact.ts';
import type { SubmitRequest as _muster_v1_SubmitRequest, SubmitRequest__Output as _muster_v1_SubmitRequest__Output } from './muster/v1/SubmitRequest.ts';
import type { SubmitResponse as _muster_v1_SubmitResponse, SubmitResponse__Output as _muster_v1_SubmitResponse__Output } from './muster/v1/SubmitResponse.ts';
import type { SummarizeTrainingRequest as _muster_v1_SummarizeTrainingRequest, SummarizeTrainingRequest__Output as _muster_v1_SummarizeTrainingRequest__Output } from './muster/v1/SummarizeTrainingRequest.ts';
import type { SummarizeTrainingResponse as _muster_v1_SummarizeTrainingResponse, SummarizeTrainingResponse__Output as _muster_v1_SummarizeTrainingResponse__Output } from './muster/v1/SummarizeTrainingResponse.ts';
import type { Sweep as _muster_v1_Sweep, Sweep__Output as _muster_v1_Sweep__Output } from './muster/v1/Sweep.ts';
import type { SweepUse as _muster_v1_SweepUse, SweepUse__Output as _muster_v1_SweepUse__Output } from './muster/v1/SweepUse.ts';
import type { Task as _muster_v1_Task, Task__Output as _muster_v1_Task__Output } from './muster/v1/Task.ts';
import type { TaskExit as _muster_v1_TaskExit, TaskExit__Output as _muster_v1_TaskExit__Output } from './muster/v1/TaskExit.ts';
import type { TaskFailure as _muster_v1_TaskFailure, TaskFailure__Output as _muster_v1_TaskFailure__Output } from './muster/v1/TaskFailure.ts';
import type { TaskRef as _muster_v1_TaskRef, TaskRef__Output as _muster_v1_TaskRef__Output } from './muster/v1/TaskRef.ts';
import type { TokenBudget as _muster_v1_TokenBudget, TokenBudget__Output as _muster_v1_TokenBudget__Output } from './muster/v1/TokenBudget.ts';
import type { TrainingProgress as _muster_v1_TrainingProgress, TrainingProgress__Output as _muster_v1_TrainingProgress__Output } from './muster/v1/TrainingProgress.ts';
import type { TrainingReading as _muster_v1_TrainingReading, TrainingReading__Output as _muster_v1_TrainingReading__Output } from './muster/v1/TrainingReading.ts';
import type { TrainingSign as _muster_v1_TrainingSign, TrainingSign__Output as _muster_v1_TrainingSign__Output } from './muster/v1/TrainingSign.ts';
import type { TrainingStatus as _muster_v1_TrainingStatus, TrainingStatus__Output as _muster_v1_TrainingStatus__Output } from './muster/v1/TrainingStatus.ts';
import type { TrainingSummary as _muster_v1_TrainingSummary, TrainingSummary__Output as _muster_v1_TrainingSummary__Output } from './muster/v1/TrainingSummary.ts';
import type { Trial as _muster_v1_Trial, Trial__Output as _muster_v1_Trial__Output } from './muster/v1/Trial.ts';
import type { Trigger as _muster_v1_Trigger, Trigger__Output as _muster_v1_Trigger__Output } from './muster/v1/Trigger.ts';
import type { TriggerBlock as _muster_v1_TriggerBlock, TriggerBlock__Output as _muster_v1_TriggerBlock__Output } from './muster/v1/TriggerBlock.ts';
import type { TriggerFire as _muster_v1_TriggerFire, TriggerFire__Output as _muster_v1_TriggerFire__Output } from './muster/v1/TriggerFire.ts';
import type { UndrainNodeRequest as _muster_v1_UndrainNodeRequest, UndrainNodeRequest__Output as _muster_v1_UndrainNodeRequest__Output } from './muster/v1/UndrainNodeRequest.ts';
import type { Upkeep as _muster_v1_Upkeep, Upkeep__Output as _muster_v1_Upkeep__Output } from './muster/v1/Upkeep.ts';
import type { User as _muster_v1_User, User__Output as _muster_v1_User__Output } from './muster/v1/User.ts';
import type { UserToken as _muster_v1_UserToken, UserToken__Output as _muster_v1_UserToken__Output } from './muster/v1/UserToken.ts';
import type { WatchEventsRequest as _muster_v1_WatchEventsRequest, WatchEventsRequest__Output as _muster_v1_WatchEventsRequest__Output } from './muster/v1/WatchEventsRequest.ts';
import type { WatchMetricsRequest as _muster_v1_WatchMetricsRequest, WatchMetricsRequest__Output as _muster_v1_WatchMetricsRequest__Output } from './muster/v1/WatchMetricsRequest.ts';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  muster: {
    v1: {
      AcceptClockRequest: MessageTypeDefinition<_muster_v1_AcceptClockRequest, _muster_v1_AcceptClockRequest__Output>
      AcknowledgeAlertRequest: MessageTypeDefinition<_muster_v1_AcknowledgeAlertRequest, _muster_v1_AcknowledgeAlertRequest__Output>
      AddUserRequest: MessageTypeDefinition<_muster_v1_AddUserRequest, _muster_v1_AddUserRequest__Output>
      AdvanceStoreRequest: MessageTypeDefinition<_muster_v1_AdvanceStoreRequest, _muster_v1_AdvanceStoreRequest__Output>
      Advice: MessageTypeDefinition<_muster_v1_Advice, _muster_v1_Advice__Output>
      AdviseRequest: MessageTypeDefinition<_muster_v1_AdviseRequest, _muster_v1_AdviseRequest__Output>
      Alert: MessageTypeDefinition<_muster_v1_Alert, _muster_v1_Alert__Output>
      AlertEpisode: MessageTypeDefinition<_muster_v1_AlertEpisode, _muster_v1_AlertEpisode__Output>
      AlertScope: MessageTypeDefinition<_muster_v1_AlertScope, _muster_v1_AlertScope__Output>
      AlertSilence: MessageTypeDefinition<_muster_v1_AlertSilence, _muster_v1_AlertSilence__Output>
      ArrayPlace: MessageTypeDefinition<_muster_v1_ArrayPlace, _muster_v1_ArrayPlace__Output>
      Artifact: MessageTypeDefinition<_muster_v1_Artifact, _muster_v1_Artifact__Output>
      Attempt: MessageTypeDefinition<_muster_v1_Attempt, _muster_v1_Attempt__Output>
      AttemptSign: MessageTypeDefinition<_muster_v1_AttemptSign, _muster_v1_AttemptSign__Output>
      AttemptState: EnumTypeDefinition
      BackupPiece: MessageTypeDefinition<_muster_v1_BackupPiece, _muster_v1_BackupPiece__Output>
      BackupStoreRequest: MessageTypeDefinition<_muster_v1_BackupStoreRequest, _muster_v1_BackupStoreRequest__Output>
      BudgetUse: MessageTypeDefinition<_muster_v1_BudgetUse, _muster_v1_BudgetUse__Output>
      Caller: MessageTypeDefinition<_muster_v1_Caller, _muster_v1_Caller__Output>
      Cause: MessageTypeDefinition<_muster_v1_Cause, _muster_v1_Cause__Output>
      CertificateEnd: MessageTypeDefinition<_muster_v1_CertificateEnd, _muster_v1_CertificateEnd__Output>
      ChangeUserRequest: MessageTypeDefinition<_muster_v1_ChangeUserRequest, _muster_v1_ChangeUserRequest__Output>
      Checkpoint: MessageTypeDefinition<_muster_v1_Checkpoint, _muster_v1_Checkpoint__Output>
      CheckpointEvaluation: MessageTypeDefinition<_muster_v1_CheckpointEvaluation, _muster_v1_CheckpointEvaluation__Output>
      ClearConditionRequest: MessageTypeDefinition<_muster_v1_ClearConditionRequest, _muster_v1_ClearConditionRequest__Output>
      Cluster: MessageTypeDefinition<_muster_v1_Cluster, _muster_v1_Cluster__Output>
      Condition: MessageTypeDefinition<_muster_v1_Condition, _muster_v1_Condition__Output>
      ConfirmDeadRequest: MessageTypeDefinition<_muster_v1_ConfirmDeadRequest, _muster_v1_ConfirmDeadRequest__Output>
      CoordinatorClock: MessageTypeDefinition<_muster_v1_CoordinatorClock, _muster_v1_CoordinatorClock__Output>
      CreateAlertRequest: MessageTypeDefinition<_muster_v1_CreateAlertRequest, _muster_v1_CreateAlertRequest__Output>
      CreateJoinTokenRequest: MessageTypeDefinition<_muster_v1_CreateJoinTokenRequest, _muster_v1_CreateJoinTokenRequest__Output>
      CreateJoinTokenResponse: MessageTypeDefinition<_muster_v1_CreateJoinTokenResponse, _muster_v1_CreateJoinTokenResponse__Output>
      CreateLoginCodeRequest: MessageTypeDefinition<_muster_v1_CreateLoginCodeRequest, _muster_v1_CreateLoginCodeRequest__Output>
      CreateSweepRequest: MessageTypeDefinition<_muster_v1_CreateSweepRequest, _muster_v1_CreateSweepRequest__Output>
      CreateTriggerRequest: MessageTypeDefinition<_muster_v1_CreateTriggerRequest, _muster_v1_CreateTriggerRequest__Output>
      CreateUserTokenRequest: MessageTypeDefinition<_muster_v1_CreateUserTokenRequest, _muster_v1_CreateUserTokenRequest__Output>
      Credential: MessageTypeDefinition<_muster_v1_Credential, _muster_v1_Credential__Output>
      DeleteAlertRequest: MessageTypeDefinition<_muster_v1_DeleteAlertRequest, _muster_v1_DeleteAlertRequest__Output>
      DeleteTriggerRequest: MessageTypeDefinition<_muster_v1_DeleteTriggerRequest, _muster_v1_DeleteTriggerRequest__Output>
      DeviceLink: MessageTypeDefinition<_muster_v1_DeviceLink, _muster_v1_DeviceLink__Output>
      DiskPart: MessageTypeDefinition<_muster_v1_DiskPart, _muster_v1_DiskPart__Output>
      Drain: MessageTypeDefinition<_muster_v1_Drain, _muster_v1_Drain__Output>
      DrainNodeRequest: MessageTypeDefinition<_muster_v1_DrainNodeRequest, _muster_v1_DrainNodeRequest__Output>
      EndOrphansRequest: MessageTypeDefinition<_muster_v1_EndOrphansRequest, _muster_v1_EndOrphansRequest__Output>
      Event: MessageTypeDefinition<_muster_v1_Event, _muster_v1_Event__Output>
      Evidence: MessageTypeDefinition<_muster_v1_Evidence, _muster_v1_Evidence__Output>
      ExcludedNode: MessageTypeDefinition<_muster_v1_ExcludedNode, _muster_v1_ExcludedNode__Output>
      ExplainJobRequest: MessageTypeDefinition<_muster_v1_ExplainJobRequest, _muster_v1_ExplainJobRequest__Output>
      ExplainJobResponse: MessageTypeDefinition<_muster_v1_ExplainJobResponse, _muster_v1_ExplainJobResponse__Output>
      ExtendJobRequest: MessageTypeDefinition<_muster_v1_ExtendJobRequest, _muster_v1_ExtendJobRequest__Output>
      ExtendSweepRequest: MessageTypeDefinition<_muster_v1_ExtendSweepRequest, _muster_v1_ExtendSweepRequest__Output>
      FileSystem: MessageTypeDefinition<_muster_v1_FileSystem, _muster_v1_FileSystem__Output>
      FileSystemSpace: MessageTypeDefinition<_muster_v1_FileSystemSpace, _muster_v1_FileSystemSpace__Output>
      GetCallerRequest: MessageTypeDefinition<_muster_v1_GetCallerRequest, _muster_v1_GetCallerRequest__Output>
      GetClockRequest: MessageTypeDefinition<_muster_v1_GetClockRequest, _muster_v1_GetClockRequest__Output>
      GetClusterRequest: MessageTypeDefinition<_muster_v1_GetClusterRequest, _muster_v1_GetClusterRequest__Output>
      GetJobRequest: MessageTypeDefinition<_muster_v1_GetJobRequest, _muster_v1_GetJobRequest__Output>
      GetLineageRequest: MessageTypeDefinition<_muster_v1_GetLineageRequest, _muster_v1_GetLineageRequest__Output>
      GetLoginMethodRequest: MessageTypeDefinition<_muster_v1_GetLoginMethodRequest, _muster_v1_GetLoginMethodRequest__Output>
      GetNodeRequest: MessageTypeDefinition<_muster_v1_GetNodeRequest, _muster_v1_GetNodeRequest__Output>
      GetPipelineRequest: MessageTypeDefinition<_muster_v1_GetPipelineRequest, _muster_v1_GetPipelineRequest__Output>
      GetSweepRequest: MessageTypeDefinition<_muster_v1_GetSweepRequest, _muster_v1_GetSweepRequest__Output>
      GetTrainingStatusRequest: MessageTypeDefinition<_muster_v1_GetTrainingStatusRequest, _muster_v1_GetTrainingStatusRequest__Output>
      GetTriggerRequest: MessageTypeDefinition<_muster_v1_GetTriggerRequest, _muster_v1_GetTriggerRequest__Output>
      GetUpkeepRequest: MessageTypeDefinition<_muster_v1_GetUpkeepRequest, _muster_v1_GetUpkeepRequest__Output>
      Gpu: MessageTypeDefinition<_muster_v1_Gpu, _muster_v1_Gpu__Output>
      GpuDriver: MessageTypeDefinition<_muster_v1_GpuDriver, _muster_v1_GpuDriver__Output>
      GpuReading: MessageTypeDefinition<_muster_v1_GpuReading, _muster_v1_GpuReading__Output>
      GpuUsage: MessageTypeDefinition<_muster_v1_GpuUsage, _muster_v1_GpuUsage__Output>
      GpuUse: MessageTypeDefinition<_muster_v1_GpuUse, _muster_v1_GpuUse__Output>
      HangSign: MessageTypeDefinition<_muster_v1_HangSign, _muster_v1_HangSign__Output>
      HostFacts: MessageTypeDefinition<_muster_v1_HostFacts, _muster_v1_HostFacts__Output>
      HostReading: MessageTypeDefinition<_muster_v1_HostReading, _muster_v1_HostReading__Output>
      Job: MessageTypeDefinition<_muster_v1_Job, _muster_v1_Job__Output>
      JobArray: MessageTypeDefinition<_muster_v1_JobArray, _muster_v1_JobArray__Output>
      JobPhase: MessageTypeDefinition<_muster_v1_JobPhase, _muster_v1_JobPhase__Output>
      JobPhases: MessageTypeDefinition<_muster_v1_JobPhases, _muster_v1_JobPhases__Output>
      JobState: EnumTypeDefinition
      LedgerEntry: MessageTypeDefinition<_muster_v1_LedgerEntry, _muster_v1_LedgerEntry__Output>
      Lineage: MessageTypeDefinition<_muster_v1_Lineage, _muster_v1_Lineage__Output>
      LineageStep: MessageTypeDefinition<_muster_v1_LineageStep, _muster_v1_LineageStep__Output>
      ListAlertsRequest: MessageTypeDefinition<_muster_v1_ListAlertsRequest, _muster_v1_ListAlertsRequest__Output>
      ListAlertsResponse: MessageTypeDefinition<_muster_v1_ListAlertsResponse, _muster_v1_ListAlertsResponse__Output>
      ListCredentialsRequest: MessageTypeDefinition<_muster_v1_ListCredentialsRequest, _muster_v1_ListCredentialsRequest__Output>
      ListCredentialsResponse: MessageTypeDefinition<_muster_v1_ListCredentialsResponse, _muster_v1_ListCredentialsResponse__Output>
      ListJobsRequest: MessageTypeDefinition<_muster_v1_ListJobsRequest, _muster_v1_ListJobsRequest__Output>
      ListJobsResponse: MessageTypeDefinition<_muster_v1_ListJobsResponse, _muster_v1_ListJobsResponse__Output>
      ListNodesRequest: MessageTypeDefinition<_muster_v1_ListNodesRequest, _muster_v1_ListNodesRequest__Output>
      ListNodesResponse: MessageTypeDefinition<_muster_v1_ListNodesResponse, _muster_v1_ListNodesResponse__Output>
      ListPipelinesRequest: MessageTypeDefinition<_muster_v1_ListPipelinesRequest, _muster_v1_ListPipelinesRequest__Output>
      ListPipelinesResponse: MessageTypeDefinition<_muster_v1_ListPipelinesResponse, _muster_v1_ListPipelinesResponse__Output>
      ListProjectsRequest: MessageTypeDefinition<_muster_v1_ListProjectsRequest, _muster_v1_ListProjectsRequest__Output>
      ListProjectsResponse: MessageTypeDefinition<_muster_v1_ListProjectsResponse, _muster_v1_ListProjectsResponse__Output>
      ListSecretsRequest: MessageTypeDefinition<_muster_v1_ListSecretsRequest, _muster_v1_ListSecretsRequest__Output>
      ListSecretsResponse: MessageTypeDefinition<_muster_v1_ListSecretsResponse, _muster_v1_ListSecretsResponse__Output>
      ListSweepsRequest: MessageTypeDefinition<_muster_v1_ListSweepsRequest, _muster_v1_ListSweepsRequest__Output>
      ListSweepsResponse: MessageTypeDefinition<_muster_v1_ListSweepsResponse, _muster_v1_ListSweepsResponse__Output>
      ListTelemetryRequest: MessageTypeDefinition<_muster_v1_ListTelemetryRequest, _muster_v1_ListTelemetryRequest__Output>
      ListTelemetryResponse: MessageTypeDefinition<_muster_v1_ListTelemetryResponse, _muster_v1_ListTelemetryResponse__Output>
      ListTrialsRequest: MessageTypeDefinition<_muster_v1_ListTrialsRequest, _muster_v1_ListTrialsRequest__Output>
      ListTrialsResponse: MessageTypeDefinition<_muster_v1_ListTrialsResponse, _muster_v1_ListTrialsResponse__Output>
      ListTriggersRequest: MessageTypeDefinition<_muster_v1_ListTriggersRequest, _muster_v1_ListTriggersRequest__Output>
      ListTriggersResponse: MessageTypeDefinition<_muster_v1_ListTriggersResponse, _muster_v1_ListTriggersResponse__Output>
      ListUsersRequest: MessageTypeDefinition<_muster_v1_ListUsersRequest, _muster_v1_ListUsersRequest__Output>
      ListUsersResponse: MessageTypeDefinition<_muster_v1_ListUsersResponse, _muster_v1_ListUsersResponse__Output>
      LogPiece: MessageTypeDefinition<_muster_v1_LogPiece, _muster_v1_LogPiece__Output>
      LogPosition: MessageTypeDefinition<_muster_v1_LogPosition, _muster_v1_LogPosition__Output>
      LoginCode: MessageTypeDefinition<_muster_v1_LoginCode, _muster_v1_LoginCode__Output>
      LoginMethod: MessageTypeDefinition<_muster_v1_LoginMethod, _muster_v1_LoginMethod__Output>
      LoginRequest: MessageTypeDefinition<_muster_v1_LoginRequest, _muster_v1_LoginRequest__Output>
      LoginResponse: MessageTypeDefinition<_muster_v1_LoginResponse, _muster_v1_LoginResponse__Output>
      LoginWithIdTokenRequest: MessageTypeDefinition<_muster_v1_LoginWithIdTokenRequest, _muster_v1_LoginWithIdTokenRequest__Output>
      MachineDisk: MessageTypeDefinition<_muster_v1_MachineDisk, _muster_v1_MachineDisk__Output>
      MachineFacts: MessageTypeDefinition<_muster_v1_MachineFacts, _muster_v1_MachineFacts__Output>
      MemoryModule: MessageTypeDefinition<_muster_v1_MemoryModule, _muster_v1_MemoryModule__Output>
      MetricBucket: MessageTypeDefinition<_muster_v1_MetricBucket, _muster_v1_MetricBucket__Output>
      MetricOrigin: MessageTypeDefinition<_muster_v1_MetricOrigin, _muster_v1_MetricOrigin__Output>
      MetricPoint: MessageTypeDefinition<_muster_v1_MetricPoint, _muster_v1_MetricPoint__Output>
      MetricSeries: MessageTypeDefinition<_muster_v1_MetricSeries, _muster_v1_MetricSeries__Output>
      MetricSource: MessageTypeDefinition<_muster_v1_MetricSource, _muster_v1_MetricSource__Output>
      MetricUpdate: MessageTypeDefinition<_muster_v1_MetricUpdate, _muster_v1_MetricUpdate__Output>
      MigInstance: MessageTypeDefinition<_muster_v1_MigInstance, _muster_v1_MigInstance__Output>
      MissingOutput: MessageTypeDefinition<_muster_v1_MissingOutput, _muster_v1_MissingOutput__Output>
      Muster: SubtypeConstructor<typeof grpc.Client, _muster_v1_MusterClient> & { service: _muster_v1_MusterDefinition }
      Nic: MessageTypeDefinition<_muster_v1_Nic, _muster_v1_Nic__Output>
      Node: MessageTypeDefinition<_muster_v1_Node, _muster_v1_Node__Output>
      NodeInventory: MessageTypeDefinition<_muster_v1_NodeInventory, _muster_v1_NodeInventory__Output>
      NodeState: EnumTypeDefinition
      NodeTask: MessageTypeDefinition<_muster_v1_NodeTask, _muster_v1_NodeTask__Output>
      NodeTelemetry: MessageTypeDefinition<_muster_v1_NodeTelemetry, _muster_v1_NodeTelemetry__Output>
      OrphanTask: MessageTypeDefinition<_muster_v1_OrphanTask, _muster_v1_OrphanTask__Output>
      PathBandwidth: MessageTypeDefinition<_muster_v1_PathBandwidth, _muster_v1_PathBandwidth__Output>
      PauseTriggerRequest: MessageTypeDefinition<_muster_v1_PauseTriggerRequest, _muster_v1_PauseTriggerRequest__Output>
      PendingReason: MessageTypeDefinition<_muster_v1_PendingReason, _muster_v1_PendingReason__Output>
      PipelineRun: MessageTypeDefinition<_muster_v1_PipelineRun, _muster_v1_PipelineRun__Output>
      PipelineStep: MessageTypeDefinition<_muster_v1_PipelineStep, _muster_v1_PipelineStep__Output>
      Project: MessageTypeDefinition<_muster_v1_Project, _muster_v1_Project__Output>
      QueryMetricsRequest: MessageTypeDefinition<_muster_v1_QueryMetricsRequest, _muster_v1_QueryMetricsRequest__Output>
      QueryMetricsResponse: MessageTypeDefinition<_muster_v1_QueryMetricsResponse, _muster_v1_QueryMetricsResponse__Output>
      RdmaDevice: MessageTypeDefinition<_muster_v1_RdmaDevice, _muster_v1_RdmaDevice__Output>
      ReadLogsRequest: MessageTypeDefinition<_muster_v1_ReadLogsRequest, _muster_v1_ReadLogsRequest__Output>
      RejoinNodeRequest: MessageTypeDefinition<_muster_v1_RejoinNodeRequest, _muster_v1_RejoinNodeRequest__Output>
      RemoveLogsRequest: MessageTypeDefinition<_muster_v1_RemoveLogsRequest, _muster_v1_RemoveLogsRequest__Output>
      RemoveLogsResponse: MessageTypeDefinition<_muster_v1_RemoveLogsResponse, _muster_v1_RemoveLogsResponse__Output>
      RemoveNodeRequest: MessageTypeDefinition<_muster_v1_RemoveNodeRequest, _muster_v1_RemoveNodeRequest__Output>
      RemoveNodeResponse: MessageTypeDefinition<_muster_v1_RemoveNodeResponse, _muster_v1_RemoveNodeResponse__Output>
      RemoveSecretRequest: MessageTypeDefinition<_muster_v1_RemoveSecretRequest, _muster_v1_RemoveSecretRequest__Output>
      RemoveUserRequest: MessageTypeDefinition<_muster_v1_RemoveUserRequest, _muster_v1_RemoveUserRequest__Output>
      RemoveUserResponse: MessageTypeDefinition<_muster_v1_RemoveUserResponse, _muster_v1_RemoveUserResponse__Output>
      RequeueJobRequest: MessageTypeDefinition<_muster_v1_RequeueJobRequest, _muster_v1_RequeueJobRequest__Output>
      RequeueJobResponse: MessageTypeDefinition<_muster_v1_RequeueJobResponse, _muster_v1_RequeueJobResponse__Output>
      RerunPipelineRequest: MessageTypeDefinition<_muster_v1_RerunPipelineRequest, _muster_v1_RerunPipelineRequest__Output>
      ResolveJobRequest: MessageTypeDefinition<_muster_v1_ResolveJobRequest, _muster_v1_ResolveJobRequest__Output>
      ResolveJobResponse: MessageTypeDefinition<_muster_v1_ResolveJobResponse, _muster_v1_ResolveJobResponse__Output>
      Resume: MessageTypeDefinition<_muster_v1_Resume, _muster_v1_Resume__Output>
      ResumeTriggerRequest: MessageTypeDefinition<_muster_v1_ResumeTriggerRequest, _muster_v1_ResumeTriggerRequest__Output>
      ResumedFrom: MessageTypeDefinition<_muster_v1_ResumedFrom, _muster_v1_ResumedFrom__Output>
      RevokeCredentialRequest: MessageTypeDefinition<_muster_v1_RevokeCredentialRequest, _muster_v1_RevokeCredentialRequest__Output>
      RevokeCredentialResponse: MessageTypeDefinition<_muster_v1_RevokeCredentialResponse, _muster_v1_RevokeCredentialResponse__Output>
      RotateAdminTokenRequest: MessageTypeDefinition<_muster_v1_RotateAdminTokenRequest, _muster_v1_RotateAdminTokenRequest__Output>
      RotateAdminTokenResponse: MessageTypeDefinition<_muster_v1_RotateAdminTokenResponse, _muster_v1_RotateAdminTokenResponse__Output>
      RotateSecretKeyRequest: MessageTypeDefinition<_muster_v1_RotateSecretKeyRequest, _muster_v1_RotateSecretKeyRequest__Output>
      RotateSecretKeyResponse: MessageTypeDefinition<_muster_v1_RotateSecretKeyResponse, _muster_v1_RotateSecretKeyResponse__Output>
      RotateUserTokenRequest: MessageTypeDefinition<_muster_v1_RotateUserTokenRequest, _muster_v1_RotateUserTokenRequest__Output>
      RunPipelineRequest: MessageTypeDefinition<_muster_v1_RunPipelineRequest, _muster_v1_RunPipelineRequest__Output>
      RunTriggerRequest: MessageTypeDefinition<_muster_v1_RunTriggerRequest, _muster_v1_RunTriggerRequest__Output>
      Secret: MessageTypeDefinition<_muster_v1_Secret, _muster_v1_Secret__Output>
      SeedRun: MessageTypeDefinition<_muster_v1_SeedRun, _muster_v1_SeedRun__Output>
      SetMaintenanceRequest: MessageTypeDefinition<_muster_v1_SetMaintenanceRequest, _muster_v1_SetMaintenanceRequest__Output>
      SetProjectRequest: MessageTypeDefinition<_muster_v1_SetProjectRequest, _muster_v1_SetProjectRequest__Output>
      SetSecretRequest: MessageTypeDefinition<_muster_v1_SetSecretRequest, _muster_v1_SetSecretRequest__Output>
      SilenceAlertRequest: MessageTypeDefinition<_muster_v1_SilenceAlertRequest, _muster_v1_SilenceAlertRequest__Output>
      SpecProblem: MessageTypeDefinition<_muster_v1_SpecProblem, _muster_v1_SpecProblem__Output>
      SpecProblems: MessageTypeDefinition<_muster_v1_SpecProblems, _muster_v1_SpecProblems__Output>
      StopJobsRequest: MessageTypeDefinition<_muster_v1_StopJobsRequest, _muster_v1_StopJobsRequest__Output>
      StopJobsResponse: MessageTypeDefinition<_muster_v1_StopJobsResponse, _muster_v1_StopJobsResponse__Output>
      StopPipelineRequest: MessageTypeDefinition<_muster_v1_StopPipelineRequest, _muster_v1_StopPipelineRequest__Output>
      StopSweepRequest: MessageTypeDefinition<_muster_v1_StopSweepRequest, _muster_v1_StopSweepRequest__Output>
      StoredArtifact: MessageTypeDefinition<_muster_v1_StoredArtifact, _muster_v1_StoredArtifact__Output>
      SubmitRequest: MessageTypeDefinition<_muster_v1_SubmitRequest, _muster_v1_SubmitRequest__Output>
      SubmitResponse: MessageTypeDefinition<_muster_v1_SubmitResponse, _muster_v1_SubmitResponse__Output>
      SummarizeTrainingRequest: MessageTypeDefinition<_muster_v1_SummarizeTrainingRequest, _muster_v1_SummarizeTrainingRequest__Output>
      SummarizeTrainingResponse: MessageTypeDefinition<_muster_v1_SummarizeTrainingResponse, _muster_v1_SummarizeTrainingResponse__Output>
      Sweep: MessageTypeDefinition<_muster_v1_Sweep, _muster_v1_Sweep__Output>
      SweepUse: MessageTypeDefinition<_muster_v1_SweepUse, _muster_v1_SweepUse__Output>
      Task: MessageTypeDefinition<_muster_v1_Task, _muster_v1_Task__Output>
      TaskExit: MessageTypeDefinition<_muster_v1_TaskExit, _muster_v1_TaskExit__Output>
      TaskFailure: MessageTypeDefinition<_muster_v1_TaskFailure, _muster_v1_TaskFailure__Output>
      TaskRef: MessageTypeDefinition<_muster_v1_TaskRef, _muster_v1_TaskRef__Output>
      TaskState: EnumTypeDefinition
      TokenBudget: MessageTypeDefinition<_muster_v1_TokenBudget, _muster_v1_TokenBudget__Output>
      TrainingProgress: MessageTypeDefinition<_muster_v1_TrainingProgress, _muster_v1_TrainingProgress__Output>
      TrainingReading: MessageTypeDefinition<_muster_v1_TrainingReading, _muster_v1_TrainingReading__Output>
      TrainingSign: MessageTypeDefinition<_muster_v1_TrainingSign, _muster_v1_TrainingSign__Output>
      TrainingStatus: MessageTypeDefinition<_muster_v1_TrainingStatus, _muster_v1_TrainingStatus__Output>
      TrainingSummary: MessageTypeDefinition<_muster_v1_TrainingSummary, _muster_v1_TrainingSummary__Output>
      Trial: MessageTypeDefinition<_muster_v1_Trial, _muster_v1_Trial__Output>
      Trigger: MessageTypeDefinition<_muster_v1_Trigger, _muster_v1_Trigger__Output>
      TriggerBlock: MessageTypeDefinition<_muster_v1_TriggerBlock, _muster_v1_TriggerBlock__Output>
      TriggerFire: MessageTypeDefinition<_muster_v1_TriggerFire, _muster_v1_TriggerFire__Output>
      UndrainNodeRequest: MessageTypeDefinition<_muster_v1_UndrainNodeRequest, _muster_v1_UndrainNodeRequest__Output>
      Upkeep: MessageTypeDefinition<_muster_v1_Upkeep, _muster_v1_Upkeep__Output>
      User: MessageTypeDefinition<_muster_v1_User, _muster_v1_User__Output>
      UserToken: MessageTypeDefinition<_muster_v1_UserToken, _muster_v1_UserToken__Output>
      WatchEventsRequest: MessageTypeDefinition<_muster_v1_WatchEventsRequest, _muster_v1_WatchEventsRequest__Output>
      WatchMetricsRequest: MessageTypeDefinition<_muster_v1_WatchMetricsRequest, _muster_v1_WatchMetricsRequest__Output>
    }
  }
}

