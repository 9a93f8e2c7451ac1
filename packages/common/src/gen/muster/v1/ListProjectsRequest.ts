// Original file: proto/muster/v1/muster.proto


export interface ListProjectsRequest {
}

export interface ListProjectsRequest__Output {
}
