// Original file: proto/muster/v1/muster.proto


export interface RotateAdminTokenResponse {
  'token'?: (string);
}

export interface RotateAdminTokenResponse__Output {
  'token': (string);
}
