// Original file: proto/muster/v1/muster.proto


export interface RotateSecretKeyResponse {
  'secrets'?: (number);
}

export interface RotateSecretKeyResponse__Output {
  'secrets': (number);
}
