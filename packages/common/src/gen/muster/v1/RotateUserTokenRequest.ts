// Original file: proto/muster/v1/muster.proto


export interface RotateUserTokenRequest {
  'id'?: (string);
  '_id'?: "id";
}

export interface RotateUserTokenRequest__Output {
  'id'?: (string);
  '_id'?: "id";
}
