// Original file: proto/muster/v1/types.proto

import type { Evidence as _muster_v1_Evidence, Evidence__Output as _muster_v1_Evidence__Output } from '../../muster/v1/Evidence.ts';

export interface Cause {
  'kind'?: (string);
  'message'?: (string);
  'nodeRank'?: (number);
  'node'?: (string);
  'evidence'?: (_muster_v1_Evidence | null);
  'blame'?: (string);
  '_nodeRank'?: "nodeRank";
  '_node'?: "node";
}

export interface Cause__Output {
  'kind': (string);
  'message': (string);
  'nodeRank'?: (number);
  'node'?: (string);
  'evidence': (_muster_v1_Evidence__Output | null);
  'blame': (string);
  '_nodeRank'?: "nodeRank";
  '_node'?: "node";
}
