// Original file: proto/muster/v1/agent.proto


export interface Preflight {
  'masterAddr'?: (string);
  'masterPort'?: (number);
  'timeoutMs'?: (number);
}

export interface Preflight__Output {
  'masterAddr': (string);
  'masterPort': (number);
  'timeoutMs': (number);
}
