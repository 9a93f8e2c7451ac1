// Original file: proto/muster/v1/muster.proto


export interface ReadLogsRequest {
  'jobId'?: (string);
  'attempt'?: (number);
  'nodeRank'?: (number);
  'follow'?: (boolean);
  'tailLines'?: (number);
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
  '_attempt'?: "attempt";
  '_nodeRank'?: "nodeRank";
  '_tailLines'?: "tailLines";
}
