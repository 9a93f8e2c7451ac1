// Original file: proto/muster/v1/muster.proto


export interface SetProjectRequest {
  'name'?: (string);
  'isPrivate'?: (boolean);
}

export interface SetProjectRequest__Output {
  'name': (string);
  'isPrivate': (boolean);
}
