// Original file: proto/muster/v1/muster.proto


export interface BackupStoreRequest {
  'hasKeys'?: (boolean);
}

export interface BackupStoreRequest__Output {
  'hasKeys': (boolean);
}
