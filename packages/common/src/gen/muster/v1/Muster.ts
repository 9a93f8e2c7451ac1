// Original file: proto/muster/v1/muster.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { AcceptClockRequest as _muster_v1_AcceptClockRequest, AcceptClockRequest__Output as _muster_v1_AcceptClockRequest__Output } from '../../muster/v1/AcceptClockRequest.ts';
import type { AcknowledgeAlertRequest as _muster_v1_AcknowledgeAlertRequest, AcknowledgeAlertRequest__Output as _muster_v1_AcknowledgeAlertRequest__Output } from '../../muster/v1/AcknowledgeAlertRequest.ts';
import type { AddUserRequest as _muster_v1_AddUserRequest, AddUserRequest__Output as _muster_v1_AddUserRequest__Output } from '../../muster/v1/AddUserRequest.ts';
import type { AdvanceStoreRequest as _muster_v1_AdvanceStoreRequest, AdvanceStoreRequest__Output as _muster_v1_AdvanceStoreRequest__Output } from '../../muster/v1/AdvanceStoreRequest.ts';
import type { Advice as _muster_v1_Advice, Advice__Output as _muster_v1_Advice__Output } from '../../muster/v1/Advice.ts';
import type { AdviseRequest as _muster_v1_AdviseRequest, AdviseRequest__Output as _muster_v1_AdviseRequest__Output } from '../../muster/v1/AdviseRequest.ts';
import type { Alert as _muster_v1_Alert, Alert__Output as _muster_v1_Alert__Output } from '../../muster/v1/Alert.ts';
import type { BackupPiece as _muster_v1_BackupPiece, BackupPiece__Output as _muster_v1_BackupPiece__Output } from '../../muster/v1/BackupPiece.ts';
import type { BackupStoreRequest as _muster_v1_BackupStoreRequest, BackupStoreRequest__Output as _muster_v1_BackupStoreRequest__Output } from '../../muster/v1/BackupStoreRequest.ts';
import type { Caller as _muster_v1_Caller, Caller__Output as _muster_v1_Caller__Output } from '../../muster/v1/Caller.ts';
import type { ChangeUserRequest as _muster_v1_ChangeUserRequest, ChangeUserRequest__Output as _muster_v1_ChangeUserRequest__Output } from '../../muster/v1/ChangeUserRequest.ts';
import type { ClearConditionRequest as _muster_v1_ClearConditionRequest, ClearConditionRequest__Output as _muster_v1_ClearConditionRequest__Output } from '../../muster/v1/ClearConditionRequest.ts';
import type { Cluster as _muster_v1_Cluster, Cluster__Output as _muster_v1_Cluster__Output } from '../../muster/v1/Cluster.ts';
import type { ConfirmDeadRequest as _muster_v1_ConfirmDeadRequest, ConfirmDeadRequest__Output as _muster_v1_ConfirmDeadRequest__Output } from '../../muster/v1/ConfirmDeadRequest.ts';
import type { CoordinatorClock as _muster_v1_CoordinatorClock, CoordinatorClock__Output as _muster_v1_CoordinatorClock__Output } from '../../muster/v1/CoordinatorClock.ts';
import type { CreateAlertRequest as _muster_v1_CreateAlertRequest, CreateAlertRequest__Output as _muster_v1_CreateAlertRequest__Output } from '../../muster/v1/CreateAlertRequest.ts';
import type { CreateJoinTokenRequest as _muster_v1_CreateJoinTokenRequest, CreateJoinTokenRequest__Output as _muster_v1_CreateJoinTokenRequest__Output } from '../../muster/v1/CreateJoinTokenRequest.ts';
import type { CreateJoinTokenResponse as _muster_v1_CreateJoinTokenResponse, CreateJoinTokenResponse__Output as _muster_v1_CreateJoinTokenResponse__Output } from '../../muster/v1/CreateJoinTokenResponse.ts';
import type { CreateLoginCodeRequest as _muster_v1_CreateLoginCodeRequest, CreateLoginCodeRequest__Output as _muster_v1_CreateLoginCodeRequest__Output } from '../../muster/v1/CreateLoginCodeRequest.ts';
import type { CreateSweepRequest as _muster_v1_CreateSweepRequest, CreateSweepRequest__Output as _muster_v1_CreateSweepRequest__Output } from '../../muster/v1/CreateSweepRequest.ts';
import type { CreateTriggerRequest as _muster_v1_CreateTriggerRequest, CreateTriggerRequest__Output as _muster_v1_CreateTriggerRequest__Output } from '../../muster/v1/CreateTriggerRequest.ts';
import type { CreateUserTokenRequest as _muster_v1_CreateUserTokenRequest, CreateUserTokenRequest__Output as _muster_v1_CreateUserTokenRequest__Output } from '../../muster/v1/CreateUserTokenRequest.ts';
import type { DeleteAlertRequest as _muster_v1_DeleteAlertRequest, DeleteAlertRequest__Output as _muster_v1_DeleteAlertRequest__Output } from '../../muster/v1/DeleteAlertRequest.ts';
import type { DeleteTriggerRequest as _muster_v1_DeleteTriggerRequest, DeleteTriggerRequest__Output as _muster_v1_DeleteTriggerRequest__Output } from '../../muster/v1/DeleteTriggerRequest.ts';
import type { DrainNodeRequest as _muster_v1_DrainNodeRequest, DrainNodeRequest__Output as _muster_v1_DrainNodeRequest__Output } from '../../muster/v1/DrainNodeRequest.ts';
import type { EndOrphansRequest as _muster_v1_EndOrphansRequest, EndOrphansRequest__Output as _muster_v1_EndOrphansRequest__Output } from '../../muster/v1/EndOrphansRequest.ts';
import type { Event as _muster_v1_Event, Event__Output as _muster_v1_Event__Output } from '../../muster/v1/Event.ts';
import type { ExplainJobRequest as _muster_v1_ExplainJobRequest, ExplainJobRequest__Output as _muster_v1_ExplainJobRequest__Output } from '../../muster/v1/ExplainJobRequest.ts';
import type { ExplainJobResponse as _muster_v1_ExplainJobResponse, ExplainJobResponse__Output as _muster_v1_ExplainJobResponse__Output } from '../../muster/v1/ExplainJobResponse.ts';
import type { ExtendJobRequest as _muster_v1_ExtendJobRequest, ExtendJobRequest__Output as _muster_v1_ExtendJobRequest__Output } from '../../muster/v1/ExtendJobRequest.ts';
import type { ExtendSweepRequest as _muster_v1_ExtendSweepRequest, ExtendSweepRequest__Output as _muster_v1_ExtendSweepRequest__Output } from '../../muster/v1/ExtendSweepRequest.ts';
import type { GetCallerRequest as _muster_v1_GetCallerRequest, GetCallerRequest__Output as _muster_v1_GetCallerRequest__Output } from '../../muster/v1/GetCallerRequest.ts';
import type { GetClockRequest as _muster_v1_GetClockRequest, GetClockRequest__Output as _muster_v1_GetClockRequest__Output } from '../../muster/v1/GetClockRequest.ts';
import type { GetClusterRequest as _muster_v1_GetClusterRequest, GetClusterRequest__Output as _muster_v1_GetClusterRequest__Output } from '../../muster/v1/GetClusterRequest.ts';
import type { GetJobRequest as _muster_v1_GetJobRequest, GetJobRequest__Output as _muster_v1_GetJobRequest__Output } from '../../muster/v1/GetJobRequest.ts';
import type { GetLineageRequest as _muster_v1_GetLineageRequest, GetLineageRequest__Output as _muster_v1_GetLineageRequest__Output } from '../../muster/v1/GetLineageRequest.ts';
import type { GetLoginMethodRequest as _muster_v1_GetLoginMethodRequest, GetLoginMethodRequest__Output as _muster_v1_GetLoginMethodRequest__Output } from '../../muster/v1/GetLoginMethodRequest.ts';
import type { GetNodeRequest as _muster_v1_GetNodeRequest, GetNodeRequest__Output as _muster_v1_GetNodeRequest__Output } from '../../muster/v1/GetNodeRequest.ts';
import type { GetPipelineRequest as _muster_v1_GetPipelineRequest, GetPipelineRequest__Output as _muster_v1_GetPipelineRequest__Output } from '../../muster/v1/GetPipelineRequest.ts';
import type { GetSweepRequest as _muster_v1_GetSweepRequest, GetSweepRequest__Output as _muster_v1_GetSweepRequest__Output } from '../../muster/v1/GetSweepRequest.ts';
import type { GetTrainingStatusRequest as _muster_v1_GetTrainingStatusRequest, GetTrainingStatusRequest__Output as _muster_v1_GetTrainingStatusRequest__Output } from '../../muster/v1/GetTrainingStatusRequest.ts';
import type { GetTriggerRequest as _muster_v1_GetTriggerRequest, GetTriggerRequest__Output as _muster_v1_GetTriggerRequest__Output } from '../../muster/v1/GetTriggerRequest.ts';
import type { GetUpkeepRequest as _muster_v1_GetUpkeepRequest, GetUpkeepRequest__Output as _muster_v1_GetUpkeepRequest__Output } from '../../muster/v1/GetUpkeepRequest.ts';
import type { Job as _muster_v1_Job, Job__Output as _muster_v1_Job__Output } from '../../muster/v1/Job.ts';
import type { Lineage as _muster_v1_Lineage, Lineage__Output as _muster_v1_Lineage__Output } from '../../muster/v1/Lineage.ts';
import type { ListAlertsRequest as _muster_v1_ListAlertsRequest, ListAlertsRequest__Output as _muster_v1_ListAlertsRequest__Output } from '../../muster/v1/ListAlertsRequest.ts';
import type { ListAlertsResponse as _muster_v1_ListAlertsResponse, ListAlertsResponse__Output as _muster_v1_ListAlertsResponse__Output } from '../../muster/v1/ListAlertsResponse.ts';
import type { ListCredentialsRequest as _muster_v1_ListCredentialsRequest, ListCredentialsRequest__Output as _muster_v1_ListCredentialsRequest__Output } from '../../muster/v1/ListCredentialsRequest.ts';
import type { ListCredentialsResponse as _muster_v1_ListCredentialsResponse, ListCredentialsResponse__Output as _muster_v1_ListCredentialsResponse__Output } from '../../muster/v1/ListCredentialsResponse.ts';
import type { ListJobsRequest as _muster_v1_ListJobsRequest, ListJobsRequest__Output as _muster_v1_ListJobsRequest__Output } from '../../muster/v1/ListJobsRequest.ts';
import type { ListJobsResponse as _muster_v1_ListJobsResponse, ListJobsResponse__Output as _muster_v1_ListJobsResponse__Output } from '../../muster/v1/ListJobsResponse.ts';
import type { ListNodesRequest as _muster_v1_ListNodesRequest, ListNodesRequest__Output as _muster_v1_ListNodesRequest__Output } from '../../muster/v1/ListNodesRequest.ts';
import type { ListNodesResponse as _muster_v1_ListNodesResponse, ListNodesResponse__Output as _muster_v1_ListNodesResponse__Output } from '../../muster/v1/ListNodesResponse.ts';
import type { ListPipelinesRequest as _muster_v1_ListPipelinesRequest, ListPipelinesRequest__Output as _muster_v1_ListPipelinesRequest__Output } from '../../muster/v1/ListPipelinesRequest.ts';
import type { ListPipelinesResponse as _muster_v1_ListPipelinesResponse, ListPipelinesResponse__Output as _muster_v1_ListPipelinesResponse__Output } from '../../muster/v1/ListPipelinesResponse.ts';
import type { ListProjectsRequest as _muster_v1_ListProjectsRequest, ListProjectsRequest__Output as _muster_v1_ListProjectsRequest__Output } from '../../muster/v1/ListProjectsRequest.ts';
import type { ListProjectsResponse as _muster_v1_ListProjectsResponse, ListProjectsResponse__Output as _muster_v1_ListProjectsResponse__Output } from '../../muster/v1/ListProjectsResponse.ts';
import type { ListSecretsRequest as _muster_v1_ListSecretsRequest, ListSecretsRequest__Output as _muster_v1_ListSecretsRequest__Output } from '../../muster/v1/ListSecretsRequest.ts';
import type { ListSecretsResponse as _muster_v1_ListSecretsResponse, ListSecretsResponse__Output as _muster_v1_ListSecretsResponse__Output } from '../../muster/v1/ListSecretsResponse.ts';
import type { ListSweepsRequest as _muster_v1_ListSweepsRequest, ListSweepsRequest__Output as _muster_v1_ListSweepsRequest__Output } from '../../muster/v1/ListSweepsRequest.ts';
import type { ListSweepsResponse as _muster_v1_ListSweepsResponse, ListSweepsResponse__Output as _muster_v1_ListSweepsResponse__Output } from '../../muster/v1/ListSweepsResponse.ts';
import type { ListTelemetryRequest as _muster_v1_ListTelemetryRequest, ListTelemetryRequest__Output as _muster_v1_ListTelemetryRequest__Output } from '../../muster/v1/ListTelemetryRequest.ts';
import type { ListTelemetryResponse as _muster_v1_ListTelemetryResponse, ListTelemetryResponse__Output as _muster_v1_ListTelemetryResponse__Output } from '../../muster/v1/ListTelemetryResponse.ts';
import type { ListTrialsRequest as _muster_v1_ListTrialsRequest, ListTrialsRequest__Output as _muster_v1_ListTrialsRequest__Output } from '../../muster/v1/ListTrialsRequest.ts';
import type { ListTrialsResponse as _muster_v1_ListTrialsResponse, ListTrialsResponse__Output as _muster_v1_ListTrialsResponse__Output } from '../../muster/v1/ListTrialsResponse.ts';
import type { ListTriggersRequest as _muster_v1_ListTriggersRequest, ListTriggersRequest__Output as _muster_v1_ListTriggersRequest__Output } from '../../muster/v1/ListTriggersRequest.ts';
import type { ListTriggersResponse as _muster_v1_ListTriggersResponse, ListTriggersResponse__Output as _muster_v1_ListTriggersResponse__Output } from '../../muster/v1/ListTriggersResponse.ts';
import type { ListUsersRequest as _muster_v1_ListUsersRequest, ListUsersRequest__Output as _muster_v1_ListUsersRequest__Output } from '../../muster/v1/ListUsersRequest.ts';
import type { ListUsersResponse as _muster_v1_ListUsersResponse, ListUsersResponse__Output as _muster_v1_ListUsersResponse__Output } from '../../muster/v1/ListUsersResponse.ts';
import type { LogPiece as _muster_v1_LogPiece, LogPiece__Output as _muster_v1_LogPiece__Output } from '../../muster/v1/LogPiece.ts';
import type { LoginCode as _muster_v1_LoginCode, LoginCode__Output as _muster_v1_LoginCode__Output } from '../../muster/v1/LoginCode.ts';
import type { LoginMethod as _muster_v1_LoginMethod, LoginMethod__Output as _muster_v1_LoginMethod__Output } from '../../muster/v1/LoginMethod.ts';
import type { LoginRequest as _muster_v1_LoginRequest, LoginRequest__Output as _muster_v1_LoginRequest__Output } from '../../muster/v1/LoginRequest.ts';
import type { LoginResponse as _muster_v1_LoginResponse, LoginResponse__Output as _muster_v1_LoginResponse__Output } from '../../muster/v1/LoginResponse.ts';
import type { LoginWithIdTokenRequest as _muster_v1_LoginWithIdTokenRequest, LoginWithIdTokenRequest__Output as _muster_v1_LoginWithIdTokenRequest__Output } from '../../muster/v1/LoginWithIdTokenRequest.ts';
import type { MetricUpdate as _muster_v1_MetricUpdate, MetricUpdate__Output as _muster_v1_MetricUpdate__Output } from '../../muster/v1/MetricUpdate.ts';
import type { Node as _muster_v1_Node, Node__Output as _muster_v1_Node__Output } from '../../muster/v1/Node.ts';
import type { PauseTriggerRequest as _muster_v1_PauseTriggerRequest, PauseTriggerRequest__Output as _muster_v1_PauseTriggerRequest__Output } from '../../muster/v1/PauseTriggerRequest.ts';
import type { PipelineRun as _muster_v1_PipelineRun, PipelineRun__Output as _muster_v1_PipelineRun__Output } from '../../muster/v1/PipelineRun.ts';
import type { Project as _muster_v1_Project, Project__Output as _muster_v1_Project__Output } from '../../muster/v1/Project.ts';
import type { QueryMetricsRequest as _muster_v1_QueryMetricsRequest, QueryMetricsRequest__Output as _muster_v1_QueryMetricsRequest__Output } from '../../muster/v1/QueryMetricsRequest.ts';
import type { QueryMetricsResponse as _muster_v1_QueryMetricsResponse, QueryMetricsResponse__Output as _muster_v1_QueryMetricsResponse__Output } from '../../muster/v1/QueryMetricsResponse.ts';
import type { ReadLogsRequest as _muster_v1_ReadLogsRequest, ReadLogsRequest__Output as _muster_v1_ReadLogsRequest__Output } from '../../muster/v1/ReadLogsRequest.ts';
import type { RejoinNodeRequest as _muster_v1_RejoinNodeRequest, RejoinNodeRequest__Output as _muster_v1_RejoinNodeRequest__Output } from '../../muster/v1/RejoinNodeRequest.ts';
import type { RemoveLogsRequest as _muster_v1_RemoveLogsRequest, RemoveLogsRequest__Output as _muster_v1_RemoveLogsRequest__Output } from '../../muster/v1/RemoveLogsRequest.ts';
import type { RemoveLogsResponse as _muster_v1_RemoveLogsResponse, RemoveLogsResponse__Output as _muster_v1_RemoveLogsResponse__Output } from '../../muster/v1/RemoveLogsResponse.ts';
import type { RemoveNodeRequest as _muster_v1_RemoveNodeRequest, RemoveNodeRequest__Output as _muster_v1_RemoveNodeRequest__Output } from '../../muster/v1/RemoveNodeRequest.ts';
import type { RemoveNodeResponse as _muster_v1_RemoveNodeResponse, RemoveNodeResponse__Output as _muster_v1_RemoveNodeResponse__Output } from '../../muster/v1/RemoveNodeResponse.ts';
import type { RemoveSecretRequest as _muster_v1_RemoveSecretRequest, RemoveSecretRequest__Output as _muster_v1_RemoveSecretRequest__Output } from '../../muster/v1/RemoveSecretRequest.ts';
import type { RemoveUserRequest as _muster_v1_RemoveUserRequest, RemoveUserRequest__Output as _muster_v1_RemoveUserRequest__Output } from '../../muster/v1/RemoveUserRequest.ts';
import type { RemoveUserResponse as _muster_v1_RemoveUserResponse, RemoveUserResponse__Output as _muster_v1_RemoveUserResponse__Output } from '../../muster/v1/RemoveUserResponse.ts';
import type { RequeueJobRequest as _muster_v1_RequeueJobRequest, RequeueJobRequest__Output as _muster_v1_RequeueJobRequest__Output } from '../../muster/v1/RequeueJobRequest.ts';
import type { RequeueJobResponse as _muster_v1_RequeueJobResponse, RequeueJobResponse__Output as _muster_v1_RequeueJobResponse__Output } from '../../muster/v1/RequeueJobResponse.ts';
import type { RerunPipelineRequest as _muster_v1_RerunPipelineRequest, RerunPipelineRequest__Output as _muster_v1_RerunPipelineRequest__Output } from '../../muster/v1/RerunPipelineRequest.ts';
import type { ResolveJobRequest as _muster_v1_ResolveJobRequest, ResolveJobRequest__Output as _muster_v1_ResolveJobRequest__Output } from '../../muster/v1/ResolveJobRequest.ts';
import type { ResolveJobResponse as _muster_v1_ResolveJobResponse, ResolveJobResponse__Output as _muster_v1_ResolveJobResponse__Output } from '../../muster/v1/ResolveJobResponse.ts';
import type { ResumeTriggerRequest as _muster_v1_ResumeTriggerRequest, ResumeTriggerRequest__Output as _muster_v1_ResumeTriggerRequest__Output } from '../../muster/v1/ResumeTriggerRequest.ts';
import type { RevokeCredentialRequest as _muster_v1_RevokeCredentialRequest, RevokeCredentialRequest__Output as _muster_v1_RevokeCredentialRequest__Output } from '../../muster/v1/RevokeCredentialRequest.ts';
import type { RevokeCredentialResponse as _muster_v1_RevokeCredentialResponse, RevokeCredentialResponse__Output as _muster_v1_RevokeCredentialResponse__Output } from '../../muster/v1/RevokeCredentialResponse.ts';
import type { RotateAdminTokenRequest as _muster_v1_RotateAdminTokenRequest, RotateAdminTokenRequest__Output as _muster_v1_RotateAdminTokenRequest__Output } from '../../muster/v1/RotateAdminTokenRequest.ts';
import type { RotateAdminTokenResponse as _muster_v1_RotateAdminTokenResponse, RotateAdminTokenResponse__Output as _muster_v1_RotateAdminTokenResponse__Output } from '../../muster/v1/RotateAdminTokenResponse.ts';
import type { RotateSecretKeyRequest as _muster_v1_RotateSecretKeyRequest, RotateSecretKeyRequest__Output as _muster_v1_RotateSecretKeyRequest__Output } from '../../muster/v1/RotateSecretKeyRequest.ts';
import type { RotateSecretKeyResponse as _muster_v1_RotateSecretKeyResponse, RotateSecretKeyResponse__Output as _muster_v1_RotateSecretKeyResponse__Output } from '../../muster/v1/RotateSecretKeyResponse.ts';
import type { RotateUserTokenRequest as _muster_v1_RotateUserTokenRequest, RotateUserTokenRequest__Output as _muster_v1_RotateUserTokenRequest__Output } from '../../muster/v1/RotateUserTokenRequest.ts';
import type { RunPipelineRequest as _muster_v1_RunPipelineRequest, RunPipelineRequest__Output as _muster_v1_RunPipelineRequest__Output } from '../../muster/v1/RunPipelineRequest.ts';
import type { RunTriggerRequest as _muster_v1_RunTriggerRequest, RunTriggerRequest__Output as _muster_v1_RunTriggerRequest__Output } from '../../muster/v1/RunTriggerRequest.ts';
import type { Secret as _muster_v1_Secret, Secret__Output as _muster_v1_Secret__Output } from '../../muster/v1/Secret.ts';
import type { SetMaintenanceRequest as _muster_v1_SetMaintenanceRequest, SetMaintenanceRequest__Output as _muster_v1_SetMaintenanceRequest__Output } from '../../muster/v1/SetMaintenanceRequest.ts';
import type { SetProjectRequest as _muster_v1_SetProjectRequest, SetProjectRequest__Output as _muster_v1_SetProjectRequest__Output } from '../../muster/v1/SetProjectRequest.ts';
import type { SetSecretRequest as _muster_v1_SetSecretRequest, SetSecretRequest__Output as _muster_v1_SetSecretRequest__Output } from '../../muster/v1/SetSecretRequest.ts';
import type { SilenceAlertRequest as _muster_v1_SilenceAlertRequest, SilenceAlertRequest__Output as _muster_v1_SilenceAlertRequest__Output } from '../../muster/v1/SilenceAlertRequest.ts';
import type { StopJobsRequest as _muster_v1_StopJobsRequest, StopJobsRequest__Output as _muster_v1_StopJobsRequest__Output } from '../../muster/v1/StopJobsRequest.ts';
import type { StopJobsResponse as _muster_v1_StopJobsResponse, StopJobsResponse__Output as _muster_v1_StopJobsResponse__Output } from '../../muster/v1/StopJobsResponse.ts';
import type { StopPipelineRequest as _muster_v1_StopPipelineRequest, StopPipelineRequest__Output as _muster_v1_StopPipelineRequest__Output } from '../../muster/v1/StopPipelineRequest.ts';
import type { StopSweepRequest as _muster_v1_StopSweepRequest, StopSweepRequest__Output as _muster_v1_StopSweepRequest__Output } from '../../muster/v1/StopSweepRequest.ts';
import type { SubmitRequest as _muster_v1_SubmitRequest, SubmitRequest__Output as _muster_v1_SubmitRequest__Output } from '../../muster/v1/SubmitRequest.ts';
import type { SubmitResponse as _muster_v1_SubmitResponse, SubmitResponse__Output as _muster_v1_SubmitResponse__Output } from '../../muster/v1/SubmitResponse.ts';
import type { SummarizeTrainingRequest as _muster_v1_SummarizeTrainingRequest, SummarizeTrainingRequest__Output as _muster_v1_SummarizeTrainingRequest__Output } from '../../muster/v1/SummarizeTrainingRequest.ts';
import type { SummarizeTrainingResponse as _muster_v1_SummarizeTrainingResponse, SummarizeTrainingResponse__Output as _muster_v1_SummarizeTrainingResponse__Output } from '../../muster/v1/SummarizeTrainingResponse.ts';
import type { Sweep as _muster_v1_Sweep, Sweep__Output as _muster_v1_Sweep__Output } from '../../muster/v1/Sweep.ts';
import type { TrainingStatus as _muster_v1_TrainingStatus, TrainingStatus__Output as _muster_v1_TrainingStatus__Output } from '../../muster/v1/TrainingStatus.ts';
import type { Trigger as _muster_v1_Trigger, Trigger__Output as _muster_v1_Trigger__Output } from '../../muster/v1/Trigger.ts';
import type { TriggerFire as _muster_v1_TriggerFire, TriggerFire__Output as _muster_v1_TriggerFire__Output } from '../../muster/v1/TriggerFire.ts';
import type { UndrainNodeRequest as _muster_v1_UndrainNodeRequest, UndrainNodeRequest__Output as _muster_v1_UndrainNodeRequest__Output } from '../../muster/v1/UndrainNodeRequest.ts';
import type { Upkeep as _muster_v1_Upkeep, Upkeep__Output as _muster_v1_Upkeep__Output } from '../../muster/v1/Upkeep.ts';
import type { User as _muster_v1_User, User__Output as _muster_v1_User__Output } from '../../muster/v1/User.ts';
import type { UserToken as _muster_v1_UserToken, UserToken__Output as _muster_v1_UserToken__Output } from '../../muster/v1/UserToken.ts';
import type { WatchEventsRequest as _muster_v1_WatchEventsRequest, WatchEventsRequest__Output as _muster_v1_WatchEventsRequest__Output } from '../../muster/v1/WatchEventsRequest.ts';
import type { WatchMetricsRequest as _muster_v1_WatchMetricsRequest, WatchMetricsRequest__Output as _muster_v1_WatchMetricsRequest__Output } from '../../muster/v1/WatchMetricsRequest.ts';

export interface MusterClient extends grpc.Client {
  AcceptClock(argument: _muster_v1_AcceptClockRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  AcceptClock(argument: _muster_v1_AcceptClockRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  AcceptClock(argument: _muster_v1_AcceptClockRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  AcceptClock(argument: _muster_v1_AcceptClockRequest, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  acceptClock(argument: _muster_v1_AcceptClockRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  acceptClock(argument: _muster_v1_AcceptClockRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  acceptClock(argument: _muster_v1_AcceptClockRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  acceptClock(argument: _muster_v1_AcceptClockRequest, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  
  AcknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  AcknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  AcknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  AcknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  acknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  acknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  acknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  acknowledgeAlert(argument: _muster_v1_AcknowledgeAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  
  AddUser(argument: _muster_v1_AddUserRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  AddUser(argument: _muster_v1_AddUserRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  AddUser(argument: _muster_v1_AddUserRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  AddUser(argument: _muster_v1_AddUserRequest, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  addUser(argument: _muster_v1_AddUserRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  addUser(argument: _muster_v1_AddUserRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  addUser(argument: _muster_v1_AddUserRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  addUser(argument: _muster_v1_AddUserRequest, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  
  AdvanceStore(argument: _muster_v1_AdvanceStoreRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  AdvanceStore(argument: _muster_v1_AdvanceStoreRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  AdvanceStore(argument: _muster_v1_AdvanceStoreRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  AdvanceStore(argument: _muster_v1_AdvanceStoreRequest, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  advanceStore(argument: _muster_v1_AdvanceStoreRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  advanceStore(argument: _muster_v1_AdvanceStoreRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  advanceStore(argument: _muster_v1_AdvanceStoreRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  advanceStore(argument: _muster_v1_AdvanceStoreRequest, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  
  Advise(argument: _muster_v1_AdviseRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  Advise(argument: _muster_v1_AdviseRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  Advise(argument: _muster_v1_AdviseRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  Advise(argument: _muster_v1_AdviseRequest, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  advise(argument: _muster_v1_AdviseRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  advise(argument: _muster_v1_AdviseRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  advise(argument: _muster_v1_AdviseRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  advise(argument: _muster_v1_AdviseRequest, callback: grpc.requestCallback<_muster_v1_Advice__Output>): grpc.ClientUnaryCall;
  
  BackupStore(argument: _muster_v1_BackupStoreRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_BackupPiece__Output>;
  BackupStore(argument: _muster_v1_BackupStoreRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_BackupPiece__Output>;
  backupStore(argument: _muster_v1_BackupStoreRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_BackupPiece__Output>;
  backupStore(argument: _muster_v1_BackupStoreRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_BackupPiece__Output>;
  
  ChangeUser(argument: _muster_v1_ChangeUserRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  ChangeUser(argument: _muster_v1_ChangeUserRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  ChangeUser(argument: _muster_v1_ChangeUserRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  ChangeUser(argument: _muster_v1_ChangeUserRequest, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  changeUser(argument: _muster_v1_ChangeUserRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  changeUser(argument: _muster_v1_ChangeUserRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  changeUser(argument: _muster_v1_ChangeUserRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  changeUser(argument: _muster_v1_ChangeUserRequest, callback: grpc.requestCallback<_muster_v1_User__Output>): grpc.ClientUnaryCall;
  
  ClearCondition(argument: _muster_v1_ClearConditionRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  ClearCondition(argument: _muster_v1_ClearConditionRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  ClearCondition(argument: _muster_v1_ClearConditionRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  ClearCondition(argument: _muster_v1_ClearConditionRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  clearCondition(argument: _muster_v1_ClearConditionRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  clearCondition(argument: _muster_v1_ClearConditionRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  clearCondition(argument: _muster_v1_ClearConditionRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  clearCondition(argument: _muster_v1_ClearConditionRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  
  ConfirmDead(argument: _muster_v1_ConfirmDeadRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  ConfirmDead(argument: _muster_v1_ConfirmDeadRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  ConfirmDead(argument: _muster_v1_ConfirmDeadRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  ConfirmDead(argument: _muster_v1_ConfirmDeadRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  confirmDead(argument: _muster_v1_ConfirmDeadRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  confirmDead(argument: _muster_v1_ConfirmDeadRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  confirmDead(argument: _muster_v1_ConfirmDeadRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  confirmDead(argument: _muster_v1_ConfirmDeadRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  
  CreateAlert(argument: _muster_v1_CreateAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  CreateAlert(argument: _muster_v1_CreateAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  CreateAlert(argument: _muster_v1_CreateAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  CreateAlert(argument: _muster_v1_CreateAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  createAlert(argument: _muster_v1_CreateAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  createAlert(argument: _muster_v1_CreateAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  createAlert(argument: _muster_v1_CreateAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  createAlert(argument: _muster_v1_CreateAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  
  CreateJoinToken(argument: _muster_v1_CreateJoinTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  CreateJoinToken(argument: _muster_v1_CreateJoinTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  CreateJoinToken(argument: _muster_v1_CreateJoinTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  CreateJoinToken(argument: _muster_v1_CreateJoinTokenRequest, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  createJoinToken(argument: _muster_v1_CreateJoinTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  createJoinToken(argument: _muster_v1_CreateJoinTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  createJoinToken(argument: _muster_v1_CreateJoinTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  createJoinToken(argument: _muster_v1_CreateJoinTokenRequest, callback: grpc.requestCallback<_muster_v1_CreateJoinTokenResponse__Output>): grpc.ClientUnaryCall;
  
  CreateLoginCode(argument: _muster_v1_CreateLoginCodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  CreateLoginCode(argument: _muster_v1_CreateLoginCodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  CreateLoginCode(argument: _muster_v1_CreateLoginCodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  CreateLoginCode(argument: _muster_v1_CreateLoginCodeRequest, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  createLoginCode(argument: _muster_v1_CreateLoginCodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  createLoginCode(argument: _muster_v1_CreateLoginCodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  createLoginCode(argument: _muster_v1_CreateLoginCodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  createLoginCode(argument: _muster_v1_CreateLoginCodeRequest, callback: grpc.requestCallback<_muster_v1_LoginCode__Output>): grpc.ClientUnaryCall;
  
  CreateSweep(argument: _muster_v1_CreateSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  CreateSweep(argument: _muster_v1_CreateSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  CreateSweep(argument: _muster_v1_CreateSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  CreateSweep(argument: _muster_v1_CreateSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  createSweep(argument: _muster_v1_CreateSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  createSweep(argument: _muster_v1_CreateSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  createSweep(argument: _muster_v1_CreateSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  createSweep(argument: _muster_v1_CreateSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  
  CreateTrigger(argument: _muster_v1_CreateTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  CreateTrigger(argument: _muster_v1_CreateTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  CreateTrigger(argument: _muster_v1_CreateTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  CreateTrigger(argument: _muster_v1_CreateTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  createTrigger(argument: _muster_v1_CreateTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  createTrigger(argument: _muster_v1_CreateTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  createTrigger(argument: _muster_v1_CreateTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  createTrigger(argument: _muster_v1_CreateTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  
  CreateUserToken(argument: _muster_v1_CreateUserTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  CreateUserToken(argument: _muster_v1_CreateUserTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  CreateUserToken(argument: _muster_v1_CreateUserTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  CreateUserToken(argument: _muster_v1_CreateUserTokenRequest, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  createUserToken(argument: _muster_v1_CreateUserTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  createUserToken(argument: _muster_v1_CreateUserTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  createUserToken(argument: _muster_v1_CreateUserTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  createUserToken(argument: _muster_v1_CreateUserTokenRequest, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  
  DeleteAlert(argument: _muster_v1_DeleteAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  DeleteAlert(argument: _muster_v1_DeleteAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  DeleteAlert(argument: _muster_v1_DeleteAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  DeleteAlert(argument: _muster_v1_DeleteAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  deleteAlert(argument: _muster_v1_DeleteAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  deleteAlert(argument: _muster_v1_DeleteAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  deleteAlert(argument: _muster_v1_DeleteAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  deleteAlert(argument: _muster_v1_DeleteAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  
  DeleteTrigger(argument: _muster_v1_DeleteTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  DeleteTrigger(argument: _muster_v1_DeleteTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  DeleteTrigger(argument: _muster_v1_DeleteTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  DeleteTrigger(argument: _muster_v1_DeleteTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  deleteTrigger(argument: _muster_v1_DeleteTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  deleteTrigger(argument: _muster_v1_DeleteTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  deleteTrigger(argument: _muster_v1_DeleteTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  deleteTrigger(argument: _muster_v1_DeleteTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  
  DrainNode(argument: _muster_v1_DrainNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  DrainNode(argument: _muster_v1_DrainNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  DrainNode(argument: _muster_v1_DrainNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  DrainNode(argument: _muster_v1_DrainNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  drainNode(argument: _muster_v1_DrainNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  drainNode(argument: _muster_v1_DrainNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  drainNode(argument: _muster_v1_DrainNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  drainNode(argument: _muster_v1_DrainNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  
  EndOrphans(argument: _muster_v1_EndOrphansRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  EndOrphans(argument: _muster_v1_EndOrphansRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  EndOrphans(argument: _muster_v1_EndOrphansRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  EndOrphans(argument: _muster_v1_EndOrphansRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  endOrphans(argument: _muster_v1_EndOrphansRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  endOrphans(argument: _muster_v1_EndOrphansRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  endOrphans(argument: _muster_v1_EndOrphansRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  endOrphans(argument: _muster_v1_EndOrphansRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  
  ExplainJob(argument: _muster_v1_ExplainJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  ExplainJob(argument: _muster_v1_ExplainJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  ExplainJob(argument: _muster_v1_ExplainJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  ExplainJob(argument: _muster_v1_ExplainJobRequest, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  explainJob(argument: _muster_v1_ExplainJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  explainJob(argument: _muster_v1_ExplainJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  explainJob(argument: _muster_v1_ExplainJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  explainJob(argument: _muster_v1_ExplainJobRequest, callback: grpc.requestCallback<_muster_v1_ExplainJobResponse__Output>): grpc.ClientUnaryCall;
  
  ExtendJob(argument: _muster_v1_ExtendJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  ExtendJob(argument: _muster_v1_ExtendJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  ExtendJob(argument: _muster_v1_ExtendJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  ExtendJob(argument: _muster_v1_ExtendJobRequest, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  extendJob(argument: _muster_v1_ExtendJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  extendJob(argument: _muster_v1_ExtendJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  extendJob(argument: _muster_v1_ExtendJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  extendJob(argument: _muster_v1_ExtendJobRequest, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  
  ExtendSweep(argument: _muster_v1_ExtendSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  ExtendSweep(argument: _muster_v1_ExtendSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  ExtendSweep(argument: _muster_v1_ExtendSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  ExtendSweep(argument: _muster_v1_ExtendSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  extendSweep(argument: _muster_v1_ExtendSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  extendSweep(argument: _muster_v1_ExtendSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  extendSweep(argument: _muster_v1_ExtendSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  extendSweep(argument: _muster_v1_ExtendSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  
  GetCaller(argument: _muster_v1_GetCallerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  GetCaller(argument: _muster_v1_GetCallerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  GetCaller(argument: _muster_v1_GetCallerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  GetCaller(argument: _muster_v1_GetCallerRequest, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  getCaller(argument: _muster_v1_GetCallerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  getCaller(argument: _muster_v1_GetCallerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  getCaller(argument: _muster_v1_GetCallerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  getCaller(argument: _muster_v1_GetCallerRequest, callback: grpc.requestCallback<_muster_v1_Caller__Output>): grpc.ClientUnaryCall;
  
  GetClock(argument: _muster_v1_GetClockRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  GetClock(argument: _muster_v1_GetClockRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  GetClock(argument: _muster_v1_GetClockRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  GetClock(argument: _muster_v1_GetClockRequest, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  getClock(argument: _muster_v1_GetClockRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  getClock(argument: _muster_v1_GetClockRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  getClock(argument: _muster_v1_GetClockRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  getClock(argument: _muster_v1_GetClockRequest, callback: grpc.requestCallback<_muster_v1_CoordinatorClock__Output>): grpc.ClientUnaryCall;
  
  GetCluster(argument: _muster_v1_GetClusterRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  GetCluster(argument: _muster_v1_GetClusterRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  GetCluster(argument: _muster_v1_GetClusterRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  GetCluster(argument: _muster_v1_GetClusterRequest, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  getCluster(argument: _muster_v1_GetClusterRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  getCluster(argument: _muster_v1_GetClusterRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  getCluster(argument: _muster_v1_GetClusterRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  getCluster(argument: _muster_v1_GetClusterRequest, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  
  GetJob(argument: _muster_v1_GetJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  GetJob(argument: _muster_v1_GetJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  GetJob(argument: _muster_v1_GetJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  GetJob(argument: _muster_v1_GetJobRequest, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  getJob(argument: _muster_v1_GetJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  getJob(argument: _muster_v1_GetJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  getJob(argument: _muster_v1_GetJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  getJob(argument: _muster_v1_GetJobRequest, callback: grpc.requestCallback<_muster_v1_Job__Output>): grpc.ClientUnaryCall;
  
  GetLineage(argument: _muster_v1_GetLineageRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  GetLineage(argument: _muster_v1_GetLineageRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  GetLineage(argument: _muster_v1_GetLineageRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  GetLineage(argument: _muster_v1_GetLineageRequest, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  getLineage(argument: _muster_v1_GetLineageRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  getLineage(argument: _muster_v1_GetLineageRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  getLineage(argument: _muster_v1_GetLineageRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  getLineage(argument: _muster_v1_GetLineageRequest, callback: grpc.requestCallback<_muster_v1_Lineage__Output>): grpc.ClientUnaryCall;
  
  GetLoginMethod(argument: _muster_v1_GetLoginMethodRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  GetLoginMethod(argument: _muster_v1_GetLoginMethodRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  GetLoginMethod(argument: _muster_v1_GetLoginMethodRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  GetLoginMethod(argument: _muster_v1_GetLoginMethodRequest, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  getLoginMethod(argument: _muster_v1_GetLoginMethodRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  getLoginMethod(argument: _muster_v1_GetLoginMethodRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  getLoginMethod(argument: _muster_v1_GetLoginMethodRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  getLoginMethod(argument: _muster_v1_GetLoginMethodRequest, callback: grpc.requestCallback<_muster_v1_LoginMethod__Output>): grpc.ClientUnaryCall;
  
  GetNode(argument: _muster_v1_GetNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  GetNode(argument: _muster_v1_GetNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  GetNode(argument: _muster_v1_GetNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  GetNode(argument: _muster_v1_GetNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  getNode(argument: _muster_v1_GetNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  getNode(argument: _muster_v1_GetNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  getNode(argument: _muster_v1_GetNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  getNode(argument: _muster_v1_GetNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  
  GetPipeline(argument: _muster_v1_GetPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  GetPipeline(argument: _muster_v1_GetPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  GetPipeline(argument: _muster_v1_GetPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  GetPipeline(argument: _muster_v1_GetPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  getPipeline(argument: _muster_v1_GetPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  getPipeline(argument: _muster_v1_GetPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  getPipeline(argument: _muster_v1_GetPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  getPipeline(argument: _muster_v1_GetPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  
  GetSweep(argument: _muster_v1_GetSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  GetSweep(argument: _muster_v1_GetSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  GetSweep(argument: _muster_v1_GetSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  GetSweep(argument: _muster_v1_GetSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  getSweep(argument: _muster_v1_GetSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  getSweep(argument: _muster_v1_GetSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  getSweep(argument: _muster_v1_GetSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  getSweep(argument: _muster_v1_GetSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  
  GetTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  GetTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  GetTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  GetTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  getTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  getTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  getTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  getTrainingStatus(argument: _muster_v1_GetTrainingStatusRequest, callback: grpc.requestCallback<_muster_v1_TrainingStatus__Output>): grpc.ClientUnaryCall;
  
  GetTrigger(argument: _muster_v1_GetTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  GetTrigger(argument: _muster_v1_GetTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  GetTrigger(argument: _muster_v1_GetTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  GetTrigger(argument: _muster_v1_GetTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  getTrigger(argument: _muster_v1_GetTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  getTrigger(argument: _muster_v1_GetTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  getTrigger(argument: _muster_v1_GetTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  getTrigger(argument: _muster_v1_GetTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  
  GetUpkeep(argument: _muster_v1_GetUpkeepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  GetUpkeep(argument: _muster_v1_GetUpkeepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  GetUpkeep(argument: _muster_v1_GetUpkeepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  GetUpkeep(argument: _muster_v1_GetUpkeepRequest, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  getUpkeep(argument: _muster_v1_GetUpkeepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  getUpkeep(argument: _muster_v1_GetUpkeepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  getUpkeep(argument: _muster_v1_GetUpkeepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  getUpkeep(argument: _muster_v1_GetUpkeepRequest, callback: grpc.requestCallback<_muster_v1_Upkeep__Output>): grpc.ClientUnaryCall;
  
  ListAlerts(argument: _muster_v1_ListAlertsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  ListAlerts(argument: _muster_v1_ListAlertsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  ListAlerts(argument: _muster_v1_ListAlertsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  ListAlerts(argument: _muster_v1_ListAlertsRequest, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  listAlerts(argument: _muster_v1_ListAlertsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  listAlerts(argument: _muster_v1_ListAlertsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  listAlerts(argument: _muster_v1_ListAlertsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  listAlerts(argument: _muster_v1_ListAlertsRequest, callback: grpc.requestCallback<_muster_v1_ListAlertsResponse__Output>): grpc.ClientUnaryCall;
  
  ListCredentials(argument: _muster_v1_ListCredentialsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  ListCredentials(argument: _muster_v1_ListCredentialsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  ListCredentials(argument: _muster_v1_ListCredentialsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  ListCredentials(argument: _muster_v1_ListCredentialsRequest, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  listCredentials(argument: _muster_v1_ListCredentialsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  listCredentials(argument: _muster_v1_ListCredentialsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  listCredentials(argument: _muster_v1_ListCredentialsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  listCredentials(argument: _muster_v1_ListCredentialsRequest, callback: grpc.requestCallback<_muster_v1_ListCredentialsResponse__Output>): grpc.ClientUnaryCall;
  
  ListJobs(argument: _muster_v1_ListJobsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  ListJobs(argument: _muster_v1_ListJobsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  ListJobs(argument: _muster_v1_ListJobsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  ListJobs(argument: _muster_v1_ListJobsRequest, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  listJobs(argument: _muster_v1_ListJobsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  listJobs(argument: _muster_v1_ListJobsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  listJobs(argument: _muster_v1_ListJobsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  listJobs(argument: _muster_v1_ListJobsRequest, callback: grpc.requestCallback<_muster_v1_ListJobsResponse__Output>): grpc.ClientUnaryCall;
  
  ListNodes(argument: _muster_v1_ListNodesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  ListNodes(argument: _muster_v1_ListNodesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  ListNodes(argument: _muster_v1_ListNodesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  ListNodes(argument: _muster_v1_ListNodesRequest, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  listNodes(argument: _muster_v1_ListNodesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  listNodes(argument: _muster_v1_ListNodesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  listNodes(argument: _muster_v1_ListNodesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  listNodes(argument: _muster_v1_ListNodesRequest, callback: grpc.requestCallback<_muster_v1_ListNodesResponse__Output>): grpc.ClientUnaryCall;
  
  ListPipelines(argument: _muster_v1_ListPipelinesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  ListPipelines(argument: _muster_v1_ListPipelinesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  ListPipelines(argument: _muster_v1_ListPipelinesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  ListPipelines(argument: _muster_v1_ListPipelinesRequest, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  listPipelines(argument: _muster_v1_ListPipelinesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  listPipelines(argument: _muster_v1_ListPipelinesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  listPipelines(argument: _muster_v1_ListPipelinesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  listPipelines(argument: _muster_v1_ListPipelinesRequest, callback: grpc.requestCallback<_muster_v1_ListPipelinesResponse__Output>): grpc.ClientUnaryCall;
  
  ListProjects(argument: _muster_v1_ListProjectsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  ListProjects(argument: _muster_v1_ListProjectsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  ListProjects(argument: _muster_v1_ListProjectsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  ListProjects(argument: _muster_v1_ListProjectsRequest, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  listProjects(argument: _muster_v1_ListProjectsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  listProjects(argument: _muster_v1_ListProjectsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  listProjects(argument: _muster_v1_ListProjectsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  listProjects(argument: _muster_v1_ListProjectsRequest, callback: grpc.requestCallback<_muster_v1_ListProjectsResponse__Output>): grpc.ClientUnaryCall;
  
  ListSecrets(argument: _muster_v1_ListSecretsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  ListSecrets(argument: _muster_v1_ListSecretsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  ListSecrets(argument: _muster_v1_ListSecretsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  ListSecrets(argument: _muster_v1_ListSecretsRequest, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  listSecrets(argument: _muster_v1_ListSecretsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  listSecrets(argument: _muster_v1_ListSecretsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  listSecrets(argument: _muster_v1_ListSecretsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  listSecrets(argument: _muster_v1_ListSecretsRequest, callback: grpc.requestCallback<_muster_v1_ListSecretsResponse__Output>): grpc.ClientUnaryCall;
  
  ListSweeps(argument: _muster_v1_ListSweepsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  ListSweeps(argument: _muster_v1_ListSweepsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  ListSweeps(argument: _muster_v1_ListSweepsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  ListSweeps(argument: _muster_v1_ListSweepsRequest, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  listSweeps(argument: _muster_v1_ListSweepsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  listSweeps(argument: _muster_v1_ListSweepsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  listSweeps(argument: _muster_v1_ListSweepsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  listSweeps(argument: _muster_v1_ListSweepsRequest, callback: grpc.requestCallback<_muster_v1_ListSweepsResponse__Output>): grpc.ClientUnaryCall;
  
  ListTelemetry(argument: _muster_v1_ListTelemetryRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  ListTelemetry(argument: _muster_v1_ListTelemetryRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  ListTelemetry(argument: _muster_v1_ListTelemetryRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  ListTelemetry(argument: _muster_v1_ListTelemetryRequest, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  listTelemetry(argument: _muster_v1_ListTelemetryRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  listTelemetry(argument: _muster_v1_ListTelemetryRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  listTelemetry(argument: _muster_v1_ListTelemetryRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  listTelemetry(argument: _muster_v1_ListTelemetryRequest, callback: grpc.requestCallback<_muster_v1_ListTelemetryResponse__Output>): grpc.ClientUnaryCall;
  
  ListTrials(argument: _muster_v1_ListTrialsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  ListTrials(argument: _muster_v1_ListTrialsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  ListTrials(argument: _muster_v1_ListTrialsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  ListTrials(argument: _muster_v1_ListTrialsRequest, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  listTrials(argument: _muster_v1_ListTrialsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  listTrials(argument: _muster_v1_ListTrialsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  listTrials(argument: _muster_v1_ListTrialsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  listTrials(argument: _muster_v1_ListTrialsRequest, callback: grpc.requestCallback<_muster_v1_ListTrialsResponse__Output>): grpc.ClientUnaryCall;
  
  ListTriggers(argument: _muster_v1_ListTriggersRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  ListTriggers(argument: _muster_v1_ListTriggersRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  ListTriggers(argument: _muster_v1_ListTriggersRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  ListTriggers(argument: _muster_v1_ListTriggersRequest, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  listTriggers(argument: _muster_v1_ListTriggersRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  listTriggers(argument: _muster_v1_ListTriggersRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  listTriggers(argument: _muster_v1_ListTriggersRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  listTriggers(argument: _muster_v1_ListTriggersRequest, callback: grpc.requestCallback<_muster_v1_ListTriggersResponse__Output>): grpc.ClientUnaryCall;
  
  ListUsers(argument: _muster_v1_ListUsersRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  ListUsers(argument: _muster_v1_ListUsersRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  ListUsers(argument: _muster_v1_ListUsersRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  ListUsers(argument: _muster_v1_ListUsersRequest, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  listUsers(argument: _muster_v1_ListUsersRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  listUsers(argument: _muster_v1_ListUsersRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  listUsers(argument: _muster_v1_ListUsersRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  listUsers(argument: _muster_v1_ListUsersRequest, callback: grpc.requestCallback<_muster_v1_ListUsersResponse__Output>): grpc.ClientUnaryCall;
  
  Login(argument: _muster_v1_LoginRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  Login(argument: _muster_v1_LoginRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  Login(argument: _muster_v1_LoginRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  Login(argument: _muster_v1_LoginRequest, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  login(argument: _muster_v1_LoginRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  login(argument: _muster_v1_LoginRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  login(argument: _muster_v1_LoginRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  login(argument: _muster_v1_LoginRequest, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  
  LoginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  LoginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  LoginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  LoginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  loginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  loginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  loginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  loginWithIdToken(argument: _muster_v1_LoginWithIdTokenRequest, callback: grpc.requestCallback<_muster_v1_LoginResponse__Output>): grpc.ClientUnaryCall;
  
  PauseTrigger(argument: _muster_v1_PauseTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  PauseTrigger(argument: _muster_v1_PauseTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  PauseTrigger(argument: _muster_v1_PauseTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  PauseTrigger(argument: _muster_v1_PauseTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  pauseTrigger(argument: _muster_v1_PauseTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  pauseTrigger(argument: _muster_v1_PauseTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  pauseTrigger(argument: _muster_v1_PauseTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  pauseTrigger(argument: _muster_v1_PauseTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  
  QueryMetrics(argument: _muster_v1_QueryMetricsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  QueryMetrics(argument: _muster_v1_QueryMetricsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  QueryMetrics(argument: _muster_v1_QueryMetricsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  QueryMetrics(argument: _muster_v1_QueryMetricsRequest, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  queryMetrics(argument: _muster_v1_QueryMetricsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  queryMetrics(argument: _muster_v1_QueryMetricsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  queryMetrics(argument: _muster_v1_QueryMetricsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  queryMetrics(argument: _muster_v1_QueryMetricsRequest, callback: grpc.requestCallback<_muster_v1_QueryMetricsResponse__Output>): grpc.ClientUnaryCall;
  
  ReadLogs(argument: _muster_v1_ReadLogsRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_LogPiece__Output>;
  ReadLogs(argument: _muster_v1_ReadLogsRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_LogPiece__Output>;
  readLogs(argument: _muster_v1_ReadLogsRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_LogPiece__Output>;
  readLogs(argument: _muster_v1_ReadLogsRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_LogPiece__Output>;
  
  RejoinNode(argument: _muster_v1_RejoinNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  RejoinNode(argument: _muster_v1_RejoinNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  RejoinNode(argument: _muster_v1_RejoinNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  RejoinNode(argument: _muster_v1_RejoinNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  rejoinNode(argument: _muster_v1_RejoinNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  rejoinNode(argument: _muster_v1_RejoinNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  rejoinNode(argument: _muster_v1_RejoinNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  rejoinNode(argument: _muster_v1_RejoinNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  
  RemoveLogs(argument: _muster_v1_RemoveLogsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  RemoveLogs(argument: _muster_v1_RemoveLogsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  RemoveLogs(argument: _muster_v1_RemoveLogsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  RemoveLogs(argument: _muster_v1_RemoveLogsRequest, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  removeLogs(argument: _muster_v1_RemoveLogsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  removeLogs(argument: _muster_v1_RemoveLogsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  removeLogs(argument: _muster_v1_RemoveLogsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  removeLogs(argument: _muster_v1_RemoveLogsRequest, callback: grpc.requestCallback<_muster_v1_RemoveLogsResponse__Output>): grpc.ClientUnaryCall;
  
  RemoveNode(argument: _muster_v1_RemoveNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  RemoveNode(argument: _muster_v1_RemoveNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  RemoveNode(argument: _muster_v1_RemoveNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  RemoveNode(argument: _muster_v1_RemoveNodeRequest, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  removeNode(argument: _muster_v1_RemoveNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  removeNode(argument: _muster_v1_RemoveNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  removeNode(argument: _muster_v1_RemoveNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  removeNode(argument: _muster_v1_RemoveNodeRequest, callback: grpc.requestCallback<_muster_v1_RemoveNodeResponse__Output>): grpc.ClientUnaryCall;
  
  RemoveSecret(argument: _muster_v1_RemoveSecretRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  RemoveSecret(argument: _muster_v1_RemoveSecretRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  RemoveSecret(argument: _muster_v1_RemoveSecretRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  RemoveSecret(argument: _muster_v1_RemoveSecretRequest, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  removeSecret(argument: _muster_v1_RemoveSecretRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  removeSecret(argument: _muster_v1_RemoveSecretRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  removeSecret(argument: _muster_v1_RemoveSecretRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  removeSecret(argument: _muster_v1_RemoveSecretRequest, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  
  RemoveUser(argument: _muster_v1_RemoveUserRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  RemoveUser(argument: _muster_v1_RemoveUserRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  RemoveUser(argument: _muster_v1_RemoveUserRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  RemoveUser(argument: _muster_v1_RemoveUserRequest, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  removeUser(argument: _muster_v1_RemoveUserRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  removeUser(argument: _muster_v1_RemoveUserRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  removeUser(argument: _muster_v1_RemoveUserRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  removeUser(argument: _muster_v1_RemoveUserRequest, callback: grpc.requestCallback<_muster_v1_RemoveUserResponse__Output>): grpc.ClientUnaryCall;
  
  RequeueJob(argument: _muster_v1_RequeueJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  RequeueJob(argument: _muster_v1_RequeueJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  RequeueJob(argument: _muster_v1_RequeueJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  RequeueJob(argument: _muster_v1_RequeueJobRequest, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  requeueJob(argument: _muster_v1_RequeueJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  requeueJob(argument: _muster_v1_RequeueJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  requeueJob(argument: _muster_v1_RequeueJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  requeueJob(argument: _muster_v1_RequeueJobRequest, callback: grpc.requestCallback<_muster_v1_RequeueJobResponse__Output>): grpc.ClientUnaryCall;
  
  RerunPipeline(argument: _muster_v1_RerunPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  RerunPipeline(argument: _muster_v1_RerunPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  RerunPipeline(argument: _muster_v1_RerunPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  RerunPipeline(argument: _muster_v1_RerunPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  rerunPipeline(argument: _muster_v1_RerunPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  rerunPipeline(argument: _muster_v1_RerunPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  rerunPipeline(argument: _muster_v1_RerunPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  rerunPipeline(argument: _muster_v1_RerunPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  
  ResolveJob(argument: _muster_v1_ResolveJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  ResolveJob(argument: _muster_v1_ResolveJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  ResolveJob(argument: _muster_v1_ResolveJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  ResolveJob(argument: _muster_v1_ResolveJobRequest, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  resolveJob(argument: _muster_v1_ResolveJobRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  resolveJob(argument: _muster_v1_ResolveJobRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  resolveJob(argument: _muster_v1_ResolveJobRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  resolveJob(argument: _muster_v1_ResolveJobRequest, callback: grpc.requestCallback<_muster_v1_ResolveJobResponse__Output>): grpc.ClientUnaryCall;
  
  ResumeTrigger(argument: _muster_v1_ResumeTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  ResumeTrigger(argument: _muster_v1_ResumeTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  ResumeTrigger(argument: _muster_v1_ResumeTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  ResumeTrigger(argument: _muster_v1_ResumeTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  resumeTrigger(argument: _muster_v1_ResumeTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  resumeTrigger(argument: _muster_v1_ResumeTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  resumeTrigger(argument: _muster_v1_ResumeTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  resumeTrigger(argument: _muster_v1_ResumeTriggerRequest, callback: grpc.requestCallback<_muster_v1_Trigger__Output>): grpc.ClientUnaryCall;
  
  RevokeCredential(argument: _muster_v1_RevokeCredentialRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  RevokeCredential(argument: _muster_v1_RevokeCredentialRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  RevokeCredential(argument: _muster_v1_RevokeCredentialRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  RevokeCredential(argument: _muster_v1_RevokeCredentialRequest, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  revokeCredential(argument: _muster_v1_RevokeCredentialRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  revokeCredential(argument: _muster_v1_RevokeCredentialRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  revokeCredential(argument: _muster_v1_RevokeCredentialRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  revokeCredential(argument: _muster_v1_RevokeCredentialRequest, callback: grpc.requestCallback<_muster_v1_RevokeCredentialResponse__Output>): grpc.ClientUnaryCall;
  
  RotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  RotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  RotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  RotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  rotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  rotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  rotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  rotateAdminToken(argument: _muster_v1_RotateAdminTokenRequest, callback: grpc.requestCallback<_muster_v1_RotateAdminTokenResponse__Output>): grpc.ClientUnaryCall;
  
  RotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  RotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  RotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  RotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  rotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  rotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  rotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  rotateSecretKey(argument: _muster_v1_RotateSecretKeyRequest, callback: grpc.requestCallback<_muster_v1_RotateSecretKeyResponse__Output>): grpc.ClientUnaryCall;
  
  RotateUserToken(argument: _muster_v1_RotateUserTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  RotateUserToken(argument: _muster_v1_RotateUserTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  RotateUserToken(argument: _muster_v1_RotateUserTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  RotateUserToken(argument: _muster_v1_RotateUserTokenRequest, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  rotateUserToken(argument: _muster_v1_RotateUserTokenRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  rotateUserToken(argument: _muster_v1_RotateUserTokenRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  rotateUserToken(argument: _muster_v1_RotateUserTokenRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  rotateUserToken(argument: _muster_v1_RotateUserTokenRequest, callback: grpc.requestCallback<_muster_v1_UserToken__Output>): grpc.ClientUnaryCall;
  
  RunPipeline(argument: _muster_v1_RunPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  RunPipeline(argument: _muster_v1_RunPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  RunPipeline(argument: _muster_v1_RunPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  RunPipeline(argument: _muster_v1_RunPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  runPipeline(argument: _muster_v1_RunPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  runPipeline(argument: _muster_v1_RunPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  runPipeline(argument: _muster_v1_RunPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  runPipeline(argument: _muster_v1_RunPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  
  RunTrigger(argument: _muster_v1_RunTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  RunTrigger(argument: _muster_v1_RunTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  RunTrigger(argument: _muster_v1_RunTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  RunTrigger(argument: _muster_v1_RunTriggerRequest, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  runTrigger(argument: _muster_v1_RunTriggerRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  runTrigger(argument: _muster_v1_RunTriggerRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  runTrigger(argument: _muster_v1_RunTriggerRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  runTrigger(argument: _muster_v1_RunTriggerRequest, callback: grpc.requestCallback<_muster_v1_TriggerFire__Output>): grpc.ClientUnaryCall;
  
  SetMaintenance(argument: _muster_v1_SetMaintenanceRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  SetMaintenance(argument: _muster_v1_SetMaintenanceRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  SetMaintenance(argument: _muster_v1_SetMaintenanceRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  SetMaintenance(argument: _muster_v1_SetMaintenanceRequest, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  setMaintenance(argument: _muster_v1_SetMaintenanceRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  setMaintenance(argument: _muster_v1_SetMaintenanceRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  setMaintenance(argument: _muster_v1_SetMaintenanceRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  setMaintenance(argument: _muster_v1_SetMaintenanceRequest, callback: grpc.requestCallback<_muster_v1_Cluster__Output>): grpc.ClientUnaryCall;
  
  SetProject(argument: _muster_v1_SetProjectRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  SetProject(argument: _muster_v1_SetProjectRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  SetProject(argument: _muster_v1_SetProjectRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  SetProject(argument: _muster_v1_SetProjectRequest, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  setProject(argument: _muster_v1_SetProjectRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  setProject(argument: _muster_v1_SetProjectRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  setProject(argument: _muster_v1_SetProjectRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  setProject(argument: _muster_v1_SetProjectRequest, callback: grpc.requestCallback<_muster_v1_Project__Output>): grpc.ClientUnaryCall;
  
  SetSecret(argument: _muster_v1_SetSecretRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  SetSecret(argument: _muster_v1_SetSecretRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  SetSecret(argument: _muster_v1_SetSecretRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  SetSecret(argument: _muster_v1_SetSecretRequest, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  setSecret(argument: _muster_v1_SetSecretRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  setSecret(argument: _muster_v1_SetSecretRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  setSecret(argument: _muster_v1_SetSecretRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  setSecret(argument: _muster_v1_SetSecretRequest, callback: grpc.requestCallback<_muster_v1_Secret__Output>): grpc.ClientUnaryCall;
  
  SilenceAlert(argument: _muster_v1_SilenceAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  SilenceAlert(argument: _muster_v1_SilenceAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  SilenceAlert(argument: _muster_v1_SilenceAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  SilenceAlert(argument: _muster_v1_SilenceAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  silenceAlert(argument: _muster_v1_SilenceAlertRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  silenceAlert(argument: _muster_v1_SilenceAlertRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  silenceAlert(argument: _muster_v1_SilenceAlertRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  silenceAlert(argument: _muster_v1_SilenceAlertRequest, callback: grpc.requestCallback<_muster_v1_Alert__Output>): grpc.ClientUnaryCall;
  
  StopJobs(argument: _muster_v1_StopJobsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  StopJobs(argument: _muster_v1_StopJobsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  StopJobs(argument: _muster_v1_StopJobsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  StopJobs(argument: _muster_v1_StopJobsRequest, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  stopJobs(argument: _muster_v1_StopJobsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  stopJobs(argument: _muster_v1_StopJobsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  stopJobs(argument: _muster_v1_StopJobsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  stopJobs(argument: _muster_v1_StopJobsRequest, callback: grpc.requestCallback<_muster_v1_StopJobsResponse__Output>): grpc.ClientUnaryCall;
  
  StopPipeline(argument: _muster_v1_StopPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  StopPipeline(argument: _muster_v1_StopPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  StopPipeline(argument: _muster_v1_StopPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  StopPipeline(argument: _muster_v1_StopPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  stopPipeline(argument: _muster_v1_StopPipelineRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  stopPipeline(argument: _muster_v1_StopPipelineRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  stopPipeline(argument: _muster_v1_StopPipelineRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  stopPipeline(argument: _muster_v1_StopPipelineRequest, callback: grpc.requestCallback<_muster_v1_PipelineRun__Output>): grpc.ClientUnaryCall;
  
  StopSweep(argument: _muster_v1_StopSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  StopSweep(argument: _muster_v1_StopSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  StopSweep(argument: _muster_v1_StopSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  StopSweep(argument: _muster_v1_StopSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  stopSweep(argument: _muster_v1_StopSweepRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  stopSweep(argument: _muster_v1_StopSweepRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  stopSweep(argument: _muster_v1_StopSweepRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  stopSweep(argument: _muster_v1_StopSweepRequest, callback: grpc.requestCallback<_muster_v1_Sweep__Output>): grpc.ClientUnaryCall;
  
  Submit(argument: _muster_v1_SubmitRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  Submit(argument: _muster_v1_SubmitRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  Submit(argument: _muster_v1_SubmitRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  Submit(argument: _muster_v1_SubmitRequest, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  submit(argument: _muster_v1_SubmitRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  submit(argument: _muster_v1_SubmitRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  submit(argument: _muster_v1_SubmitRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  submit(argument: _muster_v1_SubmitRequest, callback: grpc.requestCallback<_muster_v1_SubmitResponse__Output>): grpc.ClientUnaryCall;
  
  SummarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  SummarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  SummarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  SummarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  summarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  summarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  summarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  summarizeTraining(argument: _muster_v1_SummarizeTrainingRequest, callback: grpc.requestCallback<_muster_v1_SummarizeTrainingResponse__Output>): grpc.ClientUnaryCall;
  
  UndrainNode(argument: _muster_v1_UndrainNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  UndrainNode(argument: _muster_v1_UndrainNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  UndrainNode(argument: _muster_v1_UndrainNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  UndrainNode(argument: _muster_v1_UndrainNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  undrainNode(argument: _muster_v1_UndrainNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  undrainNode(argument: _muster_v1_UndrainNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  undrainNode(argument: _muster_v1_UndrainNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  undrainNode(argument: _muster_v1_UndrainNodeRequest, callback: grpc.requestCallback<_muster_v1_Node__Output>): grpc.ClientUnaryCall;
  
  WatchEvents(argument: _muster_v1_WatchEventsRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_Event__Output>;
  WatchEvents(argument: _muster_v1_WatchEventsRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_Event__Output>;
  watchEvents(argument: _muster_v1_WatchEventsRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_Event__Output>;
  watchEvents(argument: _muster_v1_WatchEventsRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_Event__Output>;
  
  WatchMetrics(argument: _muster_v1_WatchMetricsRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_MetricUpdate__Output>;
  WatchMetrics(argument: _muster_v1_WatchMetricsRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_MetricUpdate__Output>;
  watchMetrics(argument: _muster_v1_WatchMetricsRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_MetricUpdate__Output>;
  watchMetrics(argument: _muster_v1_WatchMetricsRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_muster_v1_MetricUpdate__Output>;
  
}

export interface MusterHandlers extends grpc.UntypedServiceImplementation {
  AcceptClock: grpc.handleUnaryCall<_muster_v1_AcceptClockRequest__Output, _muster_v1_CoordinatorClock>;
  
  AcknowledgeAlert: grpc.handleUnaryCall<_muster_v1_AcknowledgeAlertRequest__Output, _muster_v1_Alert>;
  
  AddUser: grpc.handleUnaryCall<_muster_v1_AddUserRequest__Output, _muster_v1_User>;
  
  AdvanceStore: grpc.handleUnaryCall<_muster_v1_AdvanceStoreRequest__Output, _muster_v1_Cluster>;
  
  Advise: grpc.handleUnaryCall<_muster_v1_AdviseRequest__Output, _muster_v1_Advice>;
  
  BackupStore: grpc.handleServerStreamingCall<_muster_v1_BackupStoreRequest__Output, _muster_v1_BackupPiece>;
  
  ChangeUser: grpc.handleUnaryCall<_muster_v1_ChangeUserRequest__Output, _muster_v1_User>;
  
  ClearCondition: grpc.handleUnaryCall<_muster_v1_ClearConditionRequest__Output, _muster_v1_Node>;
  
  ConfirmDead: grpc.handleUnaryCall<_muster_v1_ConfirmDeadRequest__Output, _muster_v1_Node>;
  
  CreateAlert: grpc.handleUnaryCall<_muster_v1_CreateAlertRequest__Output, _muster_v1_Alert>;
  
  CreateJoinToken: grpc.handleUnaryCall<_muster_v1_CreateJoinTokenRequest__Output, _muster_v1_CreateJoinTokenResponse>;
  
  CreateLoginCode: grpc.handleUnaryCall<_muster_v1_CreateLoginCodeRequest__Output, _muster_v1_LoginCode>;
  
  CreateSweep: grpc.handleUnaryCall<_muster_v1_CreateSweepRequest__Output, _muster_v1_Sweep>;
  
  CreateTrigger: grpc.handleUnaryCall<_muster_v1_CreateTriggerRequest__Output, _muster_v1_Trigger>;
  
  CreateUserToken: grpc.handleUnaryCall<_muster_v1_CreateUserTokenRequest__Output, _muster_v1_UserToken>;
  
  DeleteAlert: grpc.handleUnaryCall<_muster_v1_DeleteAlertRequest__Output, _muster_v1_Alert>;
  
  DeleteTrigger: grpc.handleUnaryCall<_muster_v1_DeleteTriggerRequest__Output, _muster_v1_Trigger>;
  
  DrainNode: grpc.handleUnaryCall<_muster_v1_DrainNodeRequest__Output, _muster_v1_Node>;
  
  EndOrphans: grpc.handleUnaryCall<_muster_v1_EndOrphansRequest__Output, _muster_v1_Node>;
  
  ExplainJob: grpc.handleUnaryCall<_muster_v1_ExplainJobRequest__Output, _muster_v1_ExplainJobResponse>;
  
  ExtendJob: grpc.handleUnaryCall<_muster_v1_ExtendJobRequest__Output, _muster_v1_Job>;
  
  ExtendSweep: grpc.handleUnaryCall<_muster_v1_ExtendSweepRequest__Output, _muster_v1_Sweep>;
  
  GetCaller: grpc.handleUnaryCall<_muster_v1_GetCallerRequest__Output, _muster_v1_Caller>;
  
  GetClock: grpc.handleUnaryCall<_muster_v1_GetClockRequest__Output, _muster_v1_CoordinatorClock>;
  
  GetCluster: grpc.handleUnaryCall<_muster_v1_GetClusterRequest__Output, _muster_v1_Cluster>;
  
  GetJob: grpc.handleUnaryCall<_muster_v1_GetJobRequest__Output, _muster_v1_Job>;
  
  GetLineage: grpc.handleUnaryCall<_muster_v1_GetLineageRequest__Output, _muster_v1_Lineage>;
  
  GetLoginMethod: grpc.handleUnaryCall<_muster_v1_GetLoginMethodRequest__Output, _muster_v1_LoginMethod>;
  
  GetNode: grpc.handleUnaryCall<_muster_v1_GetNodeRequest__Output, _muster_v1_Node>;
  
  GetPipeline: grpc.handleUnaryCall<_muster_v1_GetPipelineRequest__Output, _muster_v1_PipelineRun>;
  
  GetSweep: grpc.handleUnaryCall<_muster_v1_GetSweepRequest__Output, _muster_v1_Sweep>;
  
  GetTrainingStatus: grpc.handleUnaryCall<_muster_v1_GetTrainingStatusRequest__Output, _muster_v1_TrainingStatus>;
  
  GetTrigger: grpc.handleUnaryCall<_muster_v1_GetTriggerRequest__Output, _muster_v1_Trigger>;
  
  GetUpkeep: grpc.handleUnaryCall<_muster_v1_GetUpkeepRequest__Output, _muster_v1_Upkeep>;
  
  ListAlerts: grpc.handleUnaryCall<_muster_v1_ListAlertsRequest__Output, _muster_v1_ListAlertsResponse>;
  
  ListCredentials: grpc.handleUnaryCall<_muster_v1_ListCredentialsRequest__Output, _muster_v1_ListCredentialsResponse>;
  
  ListJobs: grpc.handleUnaryCall<_muster_v1_ListJobsRequest__Output, _muster_v1_ListJobsResponse>;
  
  ListNodes: grpc.handleUnaryCall<_muster_v1_ListNodesRequest__Output, _muster_v1_ListNodesResponse>;
  
  ListPipelines: grpc.handleUnaryCall<_muster_v1_ListPipelinesRequest__Output, _muster_v1_ListPipelinesResponse>;
  
  ListProjects: grpc.handleUnaryCall<_muster_v1_ListProjectsRequest__Output, _muster_v1_ListProjectsResponse>;
  
  ListSecrets: grpc.handleUnaryCall<_muster_v1_ListSecretsRequest__Output, _muster_v1_ListSecretsResponse>;
  
  ListSweeps: grpc.handleUnaryCall<_muster_v1_ListSweepsRequest__Output, _muster_v1_ListSweepsResponse>;
  
  ListTelemetry: grpc.handleUnaryCall<_muster_v1_ListTelemetryRequest__Output, _muster_v1_ListTelemetryResponse>;
  
  ListTrials: grpc.handleUnaryCall<_muster_v1_ListTrialsRequest__Output, _muster_v1_ListTrialsResponse>;
  
  ListTriggers: grpc.handleUnaryCall<_muster_v1_ListTriggersRequest__Output, _muster_v1_ListTriggersResponse>;
  
  ListUsers: grpc.handleUnaryCall<_muster_v1_ListUsersRequest__Output, _muster_v1_ListUsersResponse>;
  
  Login: grpc.handleUnaryCall<_muster_v1_LoginRequest__Output, _muster_v1_LoginResponse>;
  
  LoginWithIdToken: grpc.handleUnaryCall<_muster_v1_LoginWithIdTokenRequest__Output, _muster_v1_LoginResponse>;
  
  PauseTrigger: grpc.handleUnaryCall<_muster_v1_PauseTriggerRequest__Output, _muster_v1_Trigger>;
  
  QueryMetrics: grpc.handleUnaryCall<_muster_v1_QueryMetricsRequest__Output, _muster_v1_QueryMetricsResponse>;
  
  ReadLogs: grpc.handleServerStreamingCall<_muster_v1_ReadLogsRequest__Output, _muster_v1_LogPiece>;
  
  RejoinNode: grpc.handleUnaryCall<_muster_v1_RejoinNodeRequest__Output, _muster_v1_Node>;
  
  RemoveLogs: grpc.handleUnaryCall<_muster_v1_RemoveLogsRequest__Output, _muster_v1_RemoveLogsResponse>;
  
  RemoveNode: grpc.handleUnaryCall<_muster_v1_RemoveNodeRequest__Output, _muster_v1_RemoveNodeResponse>;
  
  RemoveSecret: grpc.handleUnaryCall<_muster_v1_RemoveSecretRequest__Output, _muster_v1_Secret>;
  
  RemoveUser: grpc.handleUnaryCall<_muster_v1_RemoveUserRequest__Output, _muster_v1_RemoveUserResponse>;
  
  RequeueJob: grpc.handleUnaryCall<_muster_v1_RequeueJobRequest__Output, _muster_v1_RequeueJobResponse>;
  
  RerunPipeline: grpc.handleUnaryCall<_muster_v1_RerunPipelineRequest__Output, _muster_v1_PipelineRun>;
  
  ResolveJob: grpc.handleUnaryCall<_muster_v1_ResolveJobRequest__Output, _muster_v1_ResolveJobResponse>;
  
  ResumeTrigger: grpc.handleUnaryCall<_muster_v1_ResumeTriggerRequest__Output, _muster_v1_Trigger>;
  
  RevokeCredential: grpc.handleUnaryCall<_muster_v1_RevokeCredentialRequest__Output, _muster_v1_RevokeCredentialResponse>;
  
  RotateAdminToken: grpc.handleUnaryCall<_muster_v1_RotateAdminTokenRequest__Output, _muster_v1_RotateAdminTokenResponse>;
  
  RotateSecretKey: grpc.handleUnaryCall<_muster_v1_RotateSecretKeyRequest__Output, _muster_v1_RotateSecretKeyResponse>;
  
  RotateUserToken: grpc.handleUnaryCall<_muster_v1_RotateUserTokenRequest__Output, _muster_v1_UserToken>;
  
  RunPipeline: grpc.handleUnaryCall<_muster_v1_RunPipelineRequest__Output, _muster_v1_PipelineRun>;
  
  RunTrigger: grpc.handleUnaryCall<_muster_v1_RunTriggerRequest__Output, _muster_v1_TriggerFire>;
  
  SetMaintenance: grpc.handleUnaryCall<_muster_v1_SetMaintenanceRequest__Output, _muster_v1_Cluster>;
  
  SetProject: grpc.handleUnaryCall<_muster_v1_SetProjectRequest__Output, _muster_v1_Project>;
  
  SetSecret: grpc.handleUnaryCall<_muster_v1_SetSecretRequest__Output, _muster_v1_Secret>;
  
  SilenceAlert: grpc.handleUnaryCall<_muster_v1_SilenceAlertRequest__Output, _muster_v1_Alert>;
  
  StopJobs: grpc.handleUnaryCall<_muster_v1_StopJobsRequest__Output, _muster_v1_StopJobsResponse>;
  
  StopPipeline: grpc.handleUnaryCall<_muster_v1_StopPipelineRequest__Output, _muster_v1_PipelineRun>;
  
  StopSweep: grpc.handleUnaryCall<_muster_v1_StopSweepRequest__Output, _muster_v1_Sweep>;
  
  Submit: grpc.handleUnaryCall<_muster_v1_SubmitRequest__Output, _muster_v1_SubmitResponse>;
  
  SummarizeTraining: grpc.handleUnaryCall<_muster_v1_SummarizeTrainingRequest__Output, _muster_v1_SummarizeTrainingResponse>;
  
  UndrainNode: grpc.handleUnaryCall<_muster_v1_UndrainNodeRequest__Output, _muster_v1_Node>;
  
  WatchEvents: grpc.handleServerStreamingCall<_muster_v1_WatchEventsRequest__Output, _muster_v1_Event>;
  
  WatchMetrics: grpc.handleServerStreamingCall<_muster_v1_WatchMetricsRequest__Output, _muster_v1_MetricUpdate>;
  
}

export interface MusterDefinition extends grpc.ServiceDefinition {
  AcceptClock: MethodDefinition<_muster_v1_AcceptClockRequest, _muster_v1_CoordinatorClock, _muster_v1_AcceptClockRequest__Output, _muster_v1_CoordinatorClock__Output>
  AcknowledgeAlert: MethodDefinition<_muster_v1_AcknowledgeAlertRequest, _muster_v1_Alert, _muster_v1_AcknowledgeAlertRequest__Output, _muster_v1_Alert__Output>
  AddUser: MethodDefinition<_muster_v1_AddUserRequest, _muster_v1_User, _muster_v1_AddUserRequest__Output, _muster_v1_User__Output>
  AdvanceStore: MethodDefinition<_muster_v1_AdvanceStoreRequest, _muster_v1_Cluster, _muster_v1_AdvanceStoreRequest__Output, _muster_v1_Cluster__Output>
  Advise: MethodDefinition<_muster_v1_AdviseRequest, _muster_v1_Advice, _muster_v1_AdviseRequest__Output, _muster_v1_Advice__Output>
  BackupStore: MethodDefinition<_muster_v1_BackupStoreRequest, _muster_v1_BackupPiece, _muster_v1_BackupStoreRequest__Output, _muster_v1_BackupPiece__Output>
  ChangeUser: MethodDefinition<_muster_v1_ChangeUserRequest, _muster_v1_User, _muster_v1_ChangeUserRequest__Output, _muster_v1_User__Output>
  ClearCondition: MethodDefinition<_muster_v1_ClearConditionRequest, _muster_v1_Node, _muster_v1_ClearConditionRequest__Output, _muster_v1_Node__Output>
  ConfirmDead: MethodDefinition<_muster_v1_ConfirmDeadRequest, _muster_v1_Node, _muster_v1_ConfirmDeadRequest__Output, _muster_v1_Node__Output>
  CreateAlert: MethodDefinition<_muster_v1_CreateAlertRequest, _muster_v1_Alert, _muster_v1_CreateAlertRequest__Output, _muster_v1_Alert__Output>
  CreateJoinToken: MethodDefinition<_muster_v1_CreateJoinTokenRequest, _muster_v1_CreateJoinTokenResponse, _muster_v1_CreateJoinTokenRequest__Output, _muster_v1_CreateJoinTokenResponse__Output>
  CreateLoginCode: MethodDefinition<_muster_v1_CreateLoginCodeRequest, _muster_v1_LoginCode, _muster_v1_CreateLoginCodeRequest__Output, _muster_v1_LoginCode__Output>
  CreateSweep: MethodDefinition<_muster_v1_CreateSweepRequest, _muster_v1_Sweep, _muster_v1_CreateSweepRequest__Output, _muster_v1_Sweep__Output>
  CreateTrigger: MethodDefinition<_muster_v1_CreateTriggerRequest, _muster_v1_Trigger, _muster_v1_CreateTriggerRequest__Output, _muster_v1_Trigger__Output>
  CreateUserToken: MethodDefinition<_muster_v1_CreateUserTokenRequest, _muster_v1_UserToken, _muster_v1_CreateUserTokenRequest__Output, _muster_v1_UserToken__Output>
  DeleteAlert: MethodDefinition<_muster_v1_DeleteAlertRequest, _muster_v1_Alert, _muster_v1_DeleteAlertRequest__Output, _muster_v1_Alert__Output>
  DeleteTrigger: MethodDefinition<_muster_v1_DeleteTriggerRequest, _muster_v1_Trigger, _muster_v1_DeleteTriggerRequest__Output, _muster_v1_Trigger__Output>
  DrainNode: MethodDefinition<_muster_v1_DrainNodeRequest, _muster_v1_Node, _muster_v1_DrainNodeRequest__Output, _muster_v1_Node__Output>
  EndOrphans: MethodDefinition<_muster_v1_EndOrphansRequest, _muster_v1_Node, _muster_v1_EndOrphansRequest__Output, _muster_v1_Node__Output>
  ExplainJob: MethodDefinition<_muster_v1_ExplainJobRequest, _muster_v1_ExplainJobResponse, _muster_v1_ExplainJobRequest__Output, _muster_v1_ExplainJobResponse__Output>
  ExtendJob: MethodDefinition<_muster_v1_ExtendJobRequest, _muster_v1_Job, _muster_v1_ExtendJobRequest__Output, _muster_v1_Job__Output>
  ExtendSweep: MethodDefinition<_muster_v1_ExtendSweepRequest, _muster_v1_Sweep, _muster_v1_ExtendSweepRequest__Output, _muster_v1_Sweep__Output>
  GetCaller: MethodDefinition<_muster_v1_GetCallerRequest, _muster_v1_Caller, _muster_v1_GetCallerRequest__Output, _muster_v1_Caller__Output>
  GetClock: MethodDefinition<_muster_v1_GetClockRequest, _muster_v1_CoordinatorClock, _muster_v1_GetClockRequest__Output, _muster_v1_CoordinatorClock__Output>
  GetCluster: MethodDefinition<_muster_v1_GetClusterRequest, _muster_v1_Cluster, _muster_v1_GetClusterRequest__Output, _muster_v1_Cluster__Output>
  GetJob: MethodDefinition<_muster_v1_GetJobRequest, _muster_v1_Job, _muster_v1_GetJobRequest__Output, _muster_v1_Job__Output>
  GetLineage: MethodDefinition<_muster_v1_GetLineageRequest, _muster_v1_Lineage, _muster_v1_GetLineageRequest__Output, _muster_v1_Lineage__Output>
  GetLoginMethod: MethodDefinition<_muster_v1_GetLoginMethodRequest, _muster_v1_LoginMethod, _muster_v1_GetLoginMethodRequest__Output, _muster_v1_LoginMethod__Output>
  GetNode: MethodDefinition<_muster_v1_GetNodeRequest, _muster_v1_Node, _muster_v1_GetNodeRequest__Output, _muster_v1_Node__Output>
  GetPipeline: MethodDefinition<_muster_v1_GetPipelineRequest, _muster_v1_PipelineRun, _muster_v1_GetPipelineRequest__Output, _muster_v1_PipelineRun__Output>
  GetSweep: MethodDefinition<_muster_v1_GetSweepRequest, _muster_v1_Sweep, _muster_v1_GetSweepRequest__Output, _muster_v1_Sweep__Output>
  GetTrainingStatus: MethodDefinition<_muster_v1_GetTrainingStatusRequest, _muster_v1_TrainingStatus, _muster_v1_GetTrainingStatusRequest__Output, _muster_v1_TrainingStatus__Output>
  GetTrigger: MethodDefinition<_muster_v1_GetTriggerRequest, _muster_v1_Trigger, _muster_v1_GetTriggerRequest__Output, _muster_v1_Trigger__Output>
  GetUpkeep: MethodDefinition<_muster_v1_GetUpkeepRequest, _muster_v1_Upkeep, _muster_v1_GetUpkeepRequest__Output, _muster_v1_Upkeep__Output>
  ListAlerts: MethodDefinition<_muster_v1_ListAlertsRequest, _muster_v1_ListAlertsResponse, _muster_v1_ListAlertsRequest__Output, _muster_v1_ListAlertsResponse__Output>
  ListCredentials: MethodDefinition<_muster_v1_ListCredentialsRequest, _muster_v1_ListCredentialsResponse, _muster_v1_ListCredentialsRequest__Output, _muster_v1_ListCredentialsResponse__Output>
  ListJobs: MethodDefinition<_muster_v1_ListJobsRequest, _muster_v1_ListJobsResponse, _muster_v1_ListJobsRequest__Output, _muster_v1_ListJobsResponse__Output>
  ListNodes: MethodDefinition<_muster_v1_ListNodesRequest, _muster_v1_ListNodesResponse, _muster_v1_ListNodesRequest__Output, _muster_v1_ListNodesResponse__Output>
  ListPipelines: MethodDefinition<_muster_v1_ListPipelinesRequest, _muster_v1_ListPipelinesResponse, _muster_v1_ListPipelinesRequest__Output, _muster_v1_ListPipelinesResponse__Output>
  ListProjects: MethodDefinition<_muster_v1_ListProjectsRequest, _muster_v1_ListProjectsResponse, _muster_v1_ListProjectsRequest__Output, _muster_v1_ListProjectsResponse__Output>
  ListSecrets: MethodDefinition<_muster_v1_ListSecretsRequest, _muster_v1_ListSecretsResponse, _muster_v1_ListSecretsRequest__Output, _muster_v1_ListSecretsResponse__Output>
  ListSweeps: MethodDefinition<_muster_v1_ListSweepsRequest, _muster_v1_ListSweepsResponse, _muster_v1_ListSweepsRequest__Output, _muster_v1_ListSweepsResponse__Output>
  ListTelemetry: MethodDefinition<_muster_v1_ListTelemetryRequest, _muster_v1_ListTelemetryResponse, _muster_v1_ListTelemetryRequest__Output, _muster_v1_ListTelemetryResponse__Output>
  ListTrials: MethodDefinition<_muster_v1_ListTrialsRequest, _muster_v1_ListTrialsResponse, _muster_v1_ListTrialsRequest__Output, _muster_v1_ListTrialsResponse__Output>
  ListTriggers: MethodDefinition<_muster_v1_ListTriggersRequest, _muster_v1_ListTriggersResponse, _muster_v1_ListTriggersRequest__Output, _muster_v1_ListTriggersResponse__Output>
  ListUsers: MethodDefinition<_muster_v1_ListUsersRequest, _muster_v1_ListUsersResponse, _muster_v1_ListUsersRequest__Output, _muster_v1_ListUsersResponse__Output>
  Login: MethodDefinition<_muster_v1_LoginRequest, _muster_v1_LoginResponse, _muster_v1_LoginRequest__Output, _muster_v1_LoginResponse__Output>
  LoginWithIdToken: MethodDefinition<_muster_v1_LoginWithIdTokenRequest, _muster_v1_LoginResponse, _muster_v1_LoginWithIdTokenRequest__Output, _muster_v1_LoginResponse__Output>
  PauseTrigger: MethodDefinition<_muster_v1_PauseTriggerRequest, _muster_v1_Trigger, _muster_v1_PauseTriggerRequest__Output, _muster_v1_Trigger__Output>
  QueryMetrics: MethodDefinition<_muster_v1_QueryMetricsRequest, _muster_v1_QueryMetricsResponse, _muster_v1_QueryMetricsRequest__Output, _muster_v1_QueryMetricsResponse__Output>
  ReadLogs: MethodDefinition<_muster_v1_ReadLogsRequest, _muster_v1_LogPiece, _muster_v1_ReadLogsRequest__Output, _muster_v1_LogPiece__Output>
  RejoinNode: MethodDefinition<_muster_v1_RejoinNodeRequest, _muster_v1_Node, _muster_v1_RejoinNodeRequest__Output, _muster_v1_Node__Output>
  RemoveLogs: MethodDefinition<_muster_v1_RemoveLogsRequest, _muster_v1_RemoveLogsResponse, _muster_v1_RemoveLogsRequest__Output, _muster_v1_RemoveLogsResponse__Output>
  RemoveNode: MethodDefinition<_muster_v1_RemoveNodeRequest, _muster_v1_RemoveNodeResponse, _muster_v1_RemoveNodeRequest__Output, _muster_v1_RemoveNodeResponse__Output>
  RemoveSecret: MethodDefinition<_muster_v1_RemoveSecretRequest, _muster_v1_Secret, _muster_v1_RemoveSecretRequest__Output, _muster_v1_Secret__Output>
  RemoveUser: MethodDefinition<_muster_v1_RemoveUserRequest, _muster_v1_RemoveUserResponse, _muster_v1_RemoveUserRequest__Output, _muster_v1_RemoveUserResponse__Output>
  RequeueJob: MethodDefinition<_muster_v1_RequeueJobRequest, _muster_v1_RequeueJobResponse, _muster_v1_RequeueJobRequest__Output, _muster_v1_RequeueJobResponse__Output>
  RerunPipeline: MethodDefinition<_muster_v1_RerunPipelineRequest, _muster_v1_PipelineRun, _muster_v1_RerunPipelineRequest__Output, _muster_v1_PipelineRun__Output>
  ResolveJob: MethodDefinition<_muster_v1_ResolveJobRequest, _muster_v1_ResolveJobResponse, _muster_v1_ResolveJobRequest__Output, _muster_v1_ResolveJobResponse__Output>
  ResumeTrigger: MethodDefinition<_muster_v1_ResumeTriggerRequest, _muster_v1_Trigger, _muster_v1_ResumeTriggerRequest__Output, _muster_v1_Trigger__Output>
  RevokeCredential: MethodDefinition<_muster_v1_RevokeCredentialRequest, _muster_v1_RevokeCredentialResponse, _muster_v1_RevokeCredentialRequest__Output, _muster_v1_RevokeCredentialResponse__Output>
  RotateAdminToken: MethodDefinition<_muster_v1_RotateAdminTokenRequest, _muster_v1_RotateAdminTokenResponse, _muster_v1_RotateAdminTokenRequest__Output, _muster_v1_RotateAdminTokenResponse__Output>
  RotateSecretKey: MethodDefinition<_muster_v1_RotateSecretKeyRequest, _muster_v1_RotateSecretKeyResponse, _muster_v1_RotateSecretKeyRequest__Output, _muster_v1_RotateSecretKeyResponse__Output>
  RotateUserToken: MethodDefinition<_muster_v1_RotateUserTokenRequest, _muster_v1_UserToken, _muster_v1_RotateUserTokenRequest__Output, _muster_v1_UserToken__Output>
  RunPipeline: MethodDefinition<_muster_v1_RunPipelineRequest, _muster_v1_PipelineRun, _muster_v1_RunPipelineRequest__Output, _muster_v1_PipelineRun__Output>
  RunTrigger: MethodDefinition<_muster_v1_RunTriggerRequest, _muster_v1_TriggerFire, _muster_v1_RunTriggerRequest__Output, _muster_v1_TriggerFire__Output>
  SetMaintenance: MethodDefinition<_muster_v1_SetMaintenanceRequest, _muster_v1_Cluster, _muster_v1_SetMaintenanceRequest__Output, _muster_v1_Cluster__Output>
  SetProject: MethodDefinition<_muster_v1_SetProjectRequest, _muster_v1_Project, _muster_v1_SetProjectRequest__Output, _muster_v1_Project__Output>
  SetSecret: MethodDefinition<_muster_v1_SetSecretRequest, _muster_v1_Secret, _muster_v1_SetSecretRequest__Output, _muster_v1_Secret__Output>
  SilenceAlert: MethodDefinition<_muster_v1_SilenceAlertRequest, _muster_v1_Alert, _muster_v1_SilenceAlertRequest__Output, _muster_v1_Alert__Output>
  StopJobs: MethodDefinition<_muster_v1_StopJobsRequest, _muster_v1_StopJobsResponse, _muster_v1_StopJobsRequest__Output, _muster_v1_StopJobsResponse__Output>
  StopPipeline: MethodDefinition<_muster_v1_StopPipelineRequest, _muster_v1_PipelineRun, _muster_v1_StopPipelineRequest__Output, _muster_v1_PipelineRun__Output>
  StopSweep: MethodDefinition<_muster_v1_StopSweepRequest, _muster_v1_Sweep, _muster_v1_StopSweepRequest__Output, _muster_v1_Sweep__Output>
  Submit: MethodDefinition<_muster_v1_SubmitRequest, _muster_v1_SubmitResponse, _muster_v1_SubmitRequest__Output, _muster_v1_SubmitResponse__Output>
  SummarizeTraining: MethodDefinition<_muster_v1_SummarizeTrainingRequest, _muster_v1_SummarizeTrainingResponse, _muster_v1_SummarizeTrainingRequest__Output, _muster_v1_SummarizeTrainingResponse__Output>
  UndrainNode: MethodDefinition<_muster_v1_UndrainNodeRequest, _muster_v1_Node, _muster_v1_UndrainNodeRequest__Output, _muster_v1_Node__Output>
  WatchEvents: MethodDefinition<_muster_v1_WatchEventsRequest, _muster_v1_Event, _muster_v1_WatchEventsRequest__Output, _muster_v1_Event__Output>
  WatchMetrics: MethodDefinition<_muster_v1_WatchMetricsRequest, _muster_v1_MetricUpdate, _muster_v1_WatchMetricsRequest__Output, _muster_v1_MetricUpdate__Output>
}
