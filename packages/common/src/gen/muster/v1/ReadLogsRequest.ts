// Original file: proto/muster/v1/muster.proto

import type { LogPosition as _muster_v1_LogPosition, LogPosition__Output as _muster_v1_LogPosition__Output } from '../../muster/v1/LogPosition.ts';

export interface ReadLogsRequest {
  'jobId'?: (string);
  'attempt'?: (number);
  'nodeRank'?: (number);
  'follow'?: (boolean);
  'tailLines'?: (number);
  'from'?: (_muster_v1_LogPosition)[];
  '_attempt'?: "attempt";
  '_nodeRank'?: "nodeRank";
  '_tailLines'?: "tailLines";
}

export interface ReadLogsRequest__Output {
  'jobId': (string);
  'attempt'?: (number);
  'nodeRank'?: (number);
  'follow': (boolean);
  'tailLines'?: (number);
  'from': (_muster_v1_LogPosition__Output)[];
  '_attempt'?: "attempt";
  '_nodeRank'?: "nodeRank";
  '_tailLines'?: "tailLines";
}
