// Original file: proto/muster/v1/muster.proto


export interface CreateSweepRequest {
  'specJson'?: (string);
  'requestId'?: (string);
  'dryRun'?: (boolean);
}

export interface CreateSweepRequest__Output {
  'specJson': (string);
  'requestId': (string);
  'dryRun': (boolean);
}
