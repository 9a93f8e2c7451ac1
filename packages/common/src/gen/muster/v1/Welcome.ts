// Original file: proto/muster/v1/agent.proto

import type { Assignment as _muster_v1_Assignment, Assignment__Output as _muster_v1_Assignment__Output } from '../../muster/v1/Assignment.ts';
import type { Long } from '@grpc/proto-loader';

export interface Welcome {
  'nodeName'?: (string);
  'heartbeatIntervalMs'?: (number);
  'leaseMs'?: (number);
  'desired'?: (_muster_v1_Assignment)[];
  'term'?: (number | string | Long);
  'termProof'?: (string);
  'clusterId'?: (string);
}

export interface Welcome__Output {
  'nodeName': (string);
  'heartbeatIntervalMs': (number);
  'leaseMs': (number);
  'desired': (_muster_v1_Assignment__Output)[];
  'term': (number);
  'termProof': (string);
  'clusterId': (string);
}
