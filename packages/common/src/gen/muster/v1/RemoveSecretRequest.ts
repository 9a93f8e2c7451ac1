// Original file: proto/muster/v1/muster.proto


export interface RemoveSecretRequest {
  'project'?: (string);
  'name'?: (string);
}

export interface RemoveSecretRequest__Output {
  'project': (string);
  'name': (string);
}
