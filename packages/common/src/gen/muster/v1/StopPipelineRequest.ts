// Original file: proto/muster/v1/muster.proto


export interface StopPipelineRequest {
  'run'?: (string);
  'reason'?: (string);
}

export interface StopPipelineRequest__Output {
  'run': (string);
  'reason': (string);
}
