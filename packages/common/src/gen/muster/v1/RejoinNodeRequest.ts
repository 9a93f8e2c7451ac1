// Original file: proto/muster/v1/muster.proto


export interface RejoinNodeRequest {
  'node'?: (string);
}

export interface RejoinNodeRequest__Output {
  'node': (string);
}
