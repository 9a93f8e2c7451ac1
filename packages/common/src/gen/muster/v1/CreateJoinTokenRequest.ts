// Original file: proto/muster/v1/muster.proto


export interface CreateJoinTokenRequest {
  'nodeName'?: (string);
}

export interface CreateJoinTokenRequest__Output {
  'nodeName': (string);
}
