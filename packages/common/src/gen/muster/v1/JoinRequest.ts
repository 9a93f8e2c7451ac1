// Original file: proto/muster/v1/agent.proto


export interface JoinRequest {
  'joinToken'?: (string);
  'nodeName'?: (string);
  'credential'?: (string);
}

export interface JoinRequest__Output {
  'joinToken': (string);
  'nodeName': (string);
  'credential': (string);
}
