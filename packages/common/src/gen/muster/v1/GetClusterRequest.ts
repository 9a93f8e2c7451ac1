// Original file: proto/muster/v1/muster.proto


export interface GetClusterRequest {
}

export interface GetClusterRequest__Output {
}
