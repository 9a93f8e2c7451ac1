// Original file: proto/muster/v1/muster.proto


export interface SetSecretRequest {
  'project'?: (string);
  'name'?: (string);
  'value'?: (Buffer | Uint8Array | string);
}

export interface SetSecretRequest__Output {
  'project': (string);
  'name': (string);
  'value': (Buffer);
}
