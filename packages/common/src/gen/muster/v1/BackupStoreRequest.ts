// Original file: proto/muster/v1/muster.proto


export interface BackupStoreRequest {
}

export interface BackupStoreRequest__Output {
}
