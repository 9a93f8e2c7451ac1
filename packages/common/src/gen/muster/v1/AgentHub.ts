// Original file: proto/muster/v1/agent.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { AgentMessage as _muster_v1_AgentMessage, AgentMessage__Output as _muster_v1_AgentMessage__Output } from '../../muster/v1/AgentMessage.ts';
import type { CoordinatorMessage as _muster_v1_CoordinatorMessage, CoordinatorMessage__Output as _muster_v1_CoordinatorMessage__Output } from '../../muster/v1/CoordinatorMessage.ts';
import type { JoinRequest as _muster_v1_JoinRequest, JoinRequest__Output as _muster_v1_JoinRequest__Output } from '../../muster/v1/JoinRequest.ts';
import type { JoinResponse as _muster_v1_JoinResponse, JoinResponse__Output as _muster_v1_JoinResponse__Output } from '../../muster/v1/JoinResponse.ts';
import type { LogUpload as _muster_v1_LogUpload, LogUpload__Output as _muster_v1_LogUpload__Output } from '../../muster/v1/LogUpload.ts';
import type { LogUploadAck as _muster_v1_LogUploadAck, LogUploadAck__Output as _muster_v1_LogUploadAck__Output } from '../../muster/v1/LogUploadAck.ts';
import type { ReadSecretsRequest as _muster_v1_ReadSecretsRequest, ReadSecretsRequest__Output as _muster_v1_ReadSecretsRequest__Output } from '../../muster/v1/ReadSecretsRequest.ts';
import type { ReadSecretsResponse as _muster_v1_ReadSecretsResponse, ReadSecretsResponse__Output as _muster_v1_ReadSecretsResponse__Output } from '../../muster/v1/ReadSecretsResponse.ts';
import type { RowUpload as _muster_v1_RowUpload, RowUpload__Output as _muster_v1_RowUpload__Output } from '../../muster/v1/RowUpload.ts';
import type { RowUploadAck as _muster_v1_RowUploadAck, RowUploadAck__Output as _muster_v1_RowUploadAck__Output } from '../../muster/v1/RowUploadAck.ts';
import type { TelemetryRequest as _muster_v1_TelemetryRequest, TelemetryRequest__Output as _muster_v1_TelemetryRequest__Output } from '../../muster/v1/TelemetryRequest.ts';
import type { TelemetryUpload as _muster_v1_TelemetryUpload, TelemetryUpload__Output as _muster_v1_TelemetryUpload__Output } from '../../muster/v1/TelemetryUpload.ts';

export interface AgentHubClient extends grpc.Client {
  Join(argument: _muster_v1_JoinRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  Join(argument: _muster_v1_JoinRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  Join(argument: _muster_v1_JoinRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  Join(argument: _muster_v1_JoinRequest, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  join(argument: _muster_v1_JoinRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  join(argument: _muster_v1_JoinRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  join(argument: _muster_v1_JoinRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  join(argument: _muster_v1_JoinRequest, callback: grpc.requestCallback<_muster_v1_JoinResponse__Output>): grpc.ClientUnaryCall;
  
  ReadSecrets(argument: _muster_v1_ReadSecretsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  ReadSecrets(argument: _muster_v1_ReadSecretsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  ReadSecrets(argument: _muster_v1_ReadSecretsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  ReadSecrets(argument: _muster_v1_ReadSecretsRequest, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  readSecrets(argument: _muster_v1_ReadSecretsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  readSecrets(argument: _muster_v1_ReadSecretsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  readSecrets(argument: _muster_v1_ReadSecretsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  readSecrets(argument: _muster_v1_ReadSecretsRequest, callback: grpc.requestCallback<_muster_v1_ReadSecretsResponse__Output>): grpc.ClientUnaryCall;
  
  Session(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_AgentMessage, _muster_v1_CoordinatorMessage__Output>;
  Session(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_AgentMessage, _muster_v1_CoordinatorMessage__Output>;
  session(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_AgentMessage, _muster_v1_CoordinatorMessage__Output>;
  session(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_AgentMessage, _muster_v1_CoordinatorMessage__Output>;
  
  UploadLogs(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_LogUpload, _muster_v1_LogUploadAck__Output>;
  UploadLogs(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_LogUpload, _muster_v1_LogUploadAck__Output>;
  uploadLogs(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_LogUpload, _muster_v1_LogUploadAck__Output>;
  uploadLogs(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_LogUpload, _muster_v1_LogUploadAck__Output>;
  
  UploadRows(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_RowUpload, _muster_v1_RowUploadAck__Output>;
  UploadRows(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_RowUpload, _muster_v1_RowUploadAck__Output>;
  uploadRows(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_RowUpload, _muster_v1_RowUploadAck__Output>;
  uploadRows(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_RowUpload, _muster_v1_RowUploadAck__Output>;
  
  UploadTelemetry(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_TelemetryUpload, _muster_v1_TelemetryRequest__Output>;
  UploadTelemetry(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_TelemetryUpload, _muster_v1_TelemetryRequest__Output>;
  uploadTelemetry(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_TelemetryUpload, _muster_v1_TelemetryRequest__Output>;
  uploadTelemetry(options?: grpc.CallOptions): grpc.ClientDuplexStream<_muster_v1_TelemetryUpload, _muster_v1_TelemetryRequest__Output>;
  
}

export interface AgentHubHandlers extends grpc.UntypedServiceImplementation {
  Join: grpc.handleUnaryCall<_muster_v1_JoinRequest__Output, _muster_v1_JoinResponse>;
  
  ReadSecrets: grpc.handleUnaryCall<_muster_v1_ReadSecretsRequest__Output, _muster_v1_ReadSecretsResponse>;
  
  Session: grpc.handleBidiStreamingCall<_muster_v1_AgentMessage__Output, _muster_v1_CoordinatorMessage>;
  
  UploadLogs: grpc.handleBidiStreamingCall<_muster_v1_LogUpload__Output, _muster_v1_LogUploadAck>;
  
  UploadRows: grpc.handleBidiStreamingCall<_muster_v1_RowUpload__Output, _muster_v1_RowUploadAck>;
  
  UploadTelemetry: grpc.handleBidiStreamingCall<_muster_v1_TelemetryUpload__Output, _muster_v1_TelemetryRequest>;
  
}

export interface AgentHubDefinition extends grpc.ServiceDefinition {
  Join: MethodDefinition<_muster_v1_JoinRequest, _muster_v1_JoinResponse, _muster_v1_JoinRequest__Output, _muster_v1_JoinResponse__Output>
  ReadSecrets: MethodDefinition<_muster_v1_ReadSecretsRequest, _muster_v1_ReadSecretsResponse, _muster_v1_ReadSecretsRequest__Output, _muster_v1_ReadSecretsResponse__Output>
  Session: MethodDefinition<_muster_v1_AgentMessage, _muster_v1_CoordinatorMessage, _muster_v1_AgentMessage__Output, _muster_v1_CoordinatorMessage__Output>
  UploadLogs: MethodDefinition<_muster_v1_LogUpload, _muster_v1_LogUploadAck, _muster_v1_LogUpload__Output, _muster_v1_LogUploadAck__Output>
  UploadRows: MethodDefinition<_muster_v1_RowUpload, _muster_v1_RowUploadAck, _muster_v1_RowUpload__Output, _muster_v1_RowUploadAck__Output>
  UploadTelemetry: MethodDefinition<_muster_v1_TelemetryUpload, _muster_v1_TelemetryRequest, _muster_v1_TelemetryUpload__Output, _muster_v1_TelemetryRequest__Output>
}
