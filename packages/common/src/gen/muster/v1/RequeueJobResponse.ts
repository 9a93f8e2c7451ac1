// Original file: proto/muster/v1/muster.proto


export interface RequeueJobResponse {
  'jobId'?: (string);
  'newJob'?: (boolean);
}

export interface RequeueJobResponse__Output {
  'jobId': (string);
  'newJob': (boolean);
}
