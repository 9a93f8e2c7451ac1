// Original file: proto/muster/v1/muster.proto


export interface BackupPiece {
  'data'?: (Buffer | Uint8Array | string);
}

export interface BackupPiece__Output {
  'data': (Buffer);
}
