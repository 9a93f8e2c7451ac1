// Original file: proto/muster/v1/muster.proto


export interface RemoveUserResponse {
}

export interface RemoveUserResponse__Output {
}
