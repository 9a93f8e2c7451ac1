// Original file: proto/muster/v1/muster.proto


export interface UndrainNodeRequest {
  'node'?: (string);
}

export interface UndrainNodeRequest__Output {
  'node': (string);
}
