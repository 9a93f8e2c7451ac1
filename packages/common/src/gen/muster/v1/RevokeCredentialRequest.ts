// Original file: proto/muster/v1/muster.proto


export interface RevokeCredentialRequest {
  'name'?: (string);
  'force'?: (boolean);
}

export interface RevokeCredentialRequest__Output {
  'name': (string);
  'force': (boolean);
}
