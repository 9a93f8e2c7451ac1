// Original file: proto/muster/v1/muster.proto


export interface RerunPipelineRequest {
  'run'?: (string);
  'fromStep'?: (string);
  'requestId'?: (string);
  'noCache'?: (boolean);
}

export interface RerunPipelineRequest__Output {
  'run': (string);
  'fromStep': (string);
  'requestId': (string);
  'noCache': (boolean);
}
