// Original file: proto/muster/v1/muster.proto


export interface ResumeTriggerRequest {
  'name'?: (string);
}

export interface ResumeTriggerRequest__Output {
  'name': (string);
}
