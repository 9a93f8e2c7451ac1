// Original file: proto/muster/v1/muster.proto


export interface RemoveUserRequest {
  'name'?: (string);
}

export interface RemoveUserRequest__Output {
  'name': (string);
}
