// Original file: proto/muster/v1/muster.proto


export interface ExplainJobRequest {
  'jobId'?: (string);
}

export interface ExplainJobRequest__Output {
  'jobId': (string);
}
