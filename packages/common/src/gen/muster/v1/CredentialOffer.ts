// Original file: proto/muster/v1/agent.proto


export interface CredentialOffer {
  'credential'?: (string);
}

export interface CredentialOffer__Output {
  'credential': (string);
}
