// Original file: proto/muster/v1/muster.proto


export interface StopJobsRequest {
  'ids'?: (string)[];
  'reason'?: (string);
  'brief'?: (boolean);
}

export interface StopJobsRequest__Output {
  'ids': (string)[];
  'reason': (string);
  'brief': (boolean);
}
