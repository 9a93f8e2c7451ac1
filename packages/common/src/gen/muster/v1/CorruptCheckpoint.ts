// Original file: proto/muster/v1/agent.proto


export interface CorruptCheckpoint {
  'name'?: (string);
  'version'?: (string);
}

export interface CorruptCheckpoint__Output {
  'name': (string);
  'version': (string);
}
