// Original file: proto/muster/v1/muster.proto


export interface GetClockRequest {
}

export interface GetClockRequest__Output {
}
