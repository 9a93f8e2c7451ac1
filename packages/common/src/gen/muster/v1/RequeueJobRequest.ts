// Original file: proto/muster/v1/muster.proto


export interface RequeueJobRequest {
  'jobId'?: (string);
  'requestId'?: (string);
}

export interface RequeueJobRequest__Output {
  'jobId': (string);
  'requestId': (string);
}
