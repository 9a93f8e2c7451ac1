// Original file: proto/muster/v1/muster.proto


export interface ListSecretsRequest {
  'project'?: (string);
  '_project'?: "project";
}

export interface ListSecretsRequest__Output {
  'project'?: (string);
  '_project'?: "project";
}
