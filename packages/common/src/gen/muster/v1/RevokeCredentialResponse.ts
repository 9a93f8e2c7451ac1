// Original file: proto/muster/v1/muster.proto


export interface RevokeCredentialResponse {
  'ids'?: (string)[];
}

export interface RevokeCredentialResponse__Output {
  'ids': (string)[];
}
