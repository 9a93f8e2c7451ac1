// Original file: proto/muster/v1/muster.proto


export interface RunPipelineRequest {
  'specJson'?: (string);
  'paramsJson'?: (string);
  'requestId'?: (string);
  'dryRun'?: (boolean);
  'noCache'?: (boolean);
}

export interface RunPipelineRequest__Output {
  'specJson': (string);
  'paramsJson': (string);
  'requestId': (string);
  'dryRun': (boolean);
  'noCache': (boolean);
}
