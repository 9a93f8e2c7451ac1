// Original file: proto/muster/v1/muster.proto


export interface AcceptClockRequest {
}

export interface AcceptClockRequest__Output {
}
