// Original file: proto/muster/v1/muster.proto


export interface ListUsersRequest {
}

export interface ListUsersRequest__Output {
}
