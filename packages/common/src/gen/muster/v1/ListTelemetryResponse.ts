// Original file: proto/muster/v1/muster.proto

import type { NodeTelemetry as _muster_v1_NodeTelemetry, NodeTelemetry__Output as _muster_v1_NodeTelemetry__Output } from '../../muster/v1/NodeTelemetry.ts';

export interface ListTelemetryResponse {
  'nodes'?: (_muster_v1_NodeTelemetry)[];
}

export interface ListTelemetryResponse__Output {
  'nodes': (_muster_v1_NodeTelemetry__Output)[];
}
