// Original file: proto/muster/v1/types.proto


export interface Cause {
  'kind'?: (string);
  'message'?: (string);
  'nodeRank'?: (number);
  'node'?: (string);
  '_nodeRank'?: "nodeRank";
}

export interface Cause__Output {
  'kind': (string);
  'message': (string);
  'nodeRank'?: (number);
  'node': (string);
  '_nodeRank'?: "nodeRank";
}
