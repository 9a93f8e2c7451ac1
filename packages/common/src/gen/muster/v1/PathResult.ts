// Original file: proto/muster/v1/agent.proto


export interface PathResult {
  'nodeRank'?: (number);
  'error'?: (string);
  'roundTripUs'?: (number);
  '_error'?: "error";
}

export interface PathResult__Output {
  'nodeRank': (number);
  'error'?: (string);
  'roundTripUs': (number);
  '_error'?: "error";
}
