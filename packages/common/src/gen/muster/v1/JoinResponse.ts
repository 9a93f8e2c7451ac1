// Original file: proto/muster/v1/agent.proto


export interface JoinResponse {
  'clusterId'?: (string);
}

export interface JoinResponse__Output {
  'clusterId': (string);
}
