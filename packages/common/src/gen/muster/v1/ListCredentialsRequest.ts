// Original file: proto/muster/v1/muster.proto


export interface ListCredentialsRequest {
}

export interface ListCredentialsRequest__Output {
}
