// Original file: proto/muster/v1/muster.proto


export interface RemoveNodeRequest {
  'name'?: (string);
}

export interface RemoveNodeRequest__Output {
  'name': (string);
}
