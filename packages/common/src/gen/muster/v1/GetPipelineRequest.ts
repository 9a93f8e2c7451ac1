// Original file: proto/muster/v1/muster.proto


export interface GetPipelineRequest {
  'run'?: (string);
}

export interface GetPipelineRequest__Output {
  'run': (string);
}
