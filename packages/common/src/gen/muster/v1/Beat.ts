// Original file: proto/muster/v1/agent.proto


export interface Beat {
}

export interface Beat__Output {
}
