// Original file: proto/muster/v1/muster.proto


export interface RemoveNodeResponse {
}

export interface RemoveNodeResponse__Output {
}
