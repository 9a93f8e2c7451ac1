// Original file: proto/muster/v1/muster.proto


export interface CreateLoginCodeRequest {
  'user'?: (string);
}

export interface CreateLoginCodeRequest__Output {
  'user': (string);
}
