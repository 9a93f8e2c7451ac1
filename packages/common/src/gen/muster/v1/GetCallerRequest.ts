// Original file: proto/muster/v1/muster.proto


export interface GetCallerRequest {
}

export interface GetCallerRequest__Output {
}
