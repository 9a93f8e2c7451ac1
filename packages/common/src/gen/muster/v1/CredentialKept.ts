// Original file: proto/muster/v1/agent.proto


export interface CredentialKept {
}

export interface CredentialKept__Output {
}
