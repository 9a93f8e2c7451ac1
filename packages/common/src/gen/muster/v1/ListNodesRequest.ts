// Original file: proto/muster/v1/muster.proto


export interface ListNodesRequest {
}

export interface ListNodesRequest__Output {
}
