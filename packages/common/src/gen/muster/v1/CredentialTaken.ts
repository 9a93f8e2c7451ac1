// Original file: proto/muster/v1/agent.proto


export interface CredentialTaken {
}

export interface CredentialTaken__Output {
}
