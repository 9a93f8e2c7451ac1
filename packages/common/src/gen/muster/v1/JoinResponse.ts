// Original file: proto/muster/v1/agent.proto


export interface JoinResponse {
  'clusterId'?: (string);
  'certificate'?: (string);
  '_certificate'?: "certificate";
}

export interface JoinResponse__Output {
  'clusterId': (string);
  'certificate'?: (string);
  '_certificate'?: "certificate";
}
