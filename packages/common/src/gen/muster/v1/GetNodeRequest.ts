// Original file: proto/muster/v1/muster.proto


export interface GetNodeRequest {
  'name'?: (string);
}

export interface GetNodeRequest__Output {
  'name': (string);
}
