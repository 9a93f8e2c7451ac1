// Original file: proto/muster/v1/muster.proto


export interface GetTrainingStatusRequest {
  'jobId'?: (string);
}

export interface GetTrainingStatusRequest__Output {
  'jobId': (string);
}
