// Original file: proto/muster/v1/agent.proto


export interface CredentialTaken {
  'certificate'?: (string);
  '_certificate'?: "certificate";
}

export interface CredentialTaken__Output {
  'certificate'?: (string);
  '_certificate'?: "certificate";
}
