// Original file: proto/muster/v1/agent.proto

import type { Assign as _muster_v1_Assign, Assign__Output as _muster_v1_Assign__Output } from '../../muster/v1/Assign.ts';
import type { Long } from '@grpc/proto-loader';

export interface Welcome {
  'nodeName'?: (string);
  'heartbeatIntervalMs'?: (number);
  'leaseMs'?: (number);
  'desired'?: (_muster_v1_Assign)[];
  'term'?: (number | string | Long);
  'termProof'?: (string);
  'clusterId'?: (string);
}

export interface Welcome__Output {
  'nodeName': (string);
  'heartbeatIntervalMs': (number);
  'leaseMs': (number);
  'desired': (_muster_v1_Assign__Output)[];
  'term': (number);
  'termProof': (string);
  'clusterId': (string);
}
