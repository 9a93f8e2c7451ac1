// Original file: proto/muster/v1/agent.proto


export interface CheckpointVersion {
  'name'?: (string);
  'version'?: (string);
}

export interface CheckpointVersion__Output {
  'name': (string);
  'version': (string);
}
