// Original file: proto/muster/v1/muster.proto


export interface CreateJoinTokenRequest {
  'nodeName'?: (string);
  'replace'?: (boolean);
}

export interface CreateJoinTokenRequest__Output {
  'nodeName': (string);
  'replace': (boolean);
}
