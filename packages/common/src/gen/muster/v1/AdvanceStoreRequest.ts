// Original file: proto/muster/v1/muster.proto


export interface AdvanceStoreRequest {
}

export interface AdvanceStoreRequest__Output {
}
