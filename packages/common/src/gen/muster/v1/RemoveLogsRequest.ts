// Original file: proto/muster/v1/muster.proto


export interface RemoveLogsRequest {
  'jobId'?: (string);
}

export interface RemoveLogsRequest__Output {
  'jobId': (string);
}
