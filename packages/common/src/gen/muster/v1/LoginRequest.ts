// Original file: proto/muster/v1/muster.proto


export interface LoginRequest {
  'token'?: (string);
}

export interface LoginRequest__Output {
  'token': (string);
}
