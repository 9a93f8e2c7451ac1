// Original file: proto/muster/v1/agent.proto


export interface SecretValue {
  'name'?: (string);
  'value'?: (Buffer | Uint8Array | string);
}

export interface SecretValue__Output {
  'name': (string);
  'value': (Buffer);
}
