// Original file: proto/muster/v1/agent.proto


export interface RenewCredential {
}

export interface RenewCredential__Output {
}
