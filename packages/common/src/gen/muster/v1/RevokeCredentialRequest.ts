// Original file: proto/muster/v1/muster.proto


export interface RevokeCredentialRequest {
  'name'?: (string);
}

export interface RevokeCredentialRequest__Output {
  'name': (string);
}
