// Original file: proto/muster/v1/muster.proto


export interface GetUpkeepRequest {
}

export interface GetUpkeepRequest__Output {
}
