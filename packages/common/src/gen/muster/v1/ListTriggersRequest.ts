// Original file: proto/muster/v1/muster.proto


export interface ListTriggersRequest {
}

export interface ListTriggersRequest__Output {
}
