// Original file: proto/muster/v1/muster.proto


export interface GetLoginMethodRequest {
}

export interface GetLoginMethodRequest__Output {
}
