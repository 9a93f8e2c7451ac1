// Original file: proto/muster/v1/muster.proto


export interface GetTriggerRequest {
  'name'?: (string);
}

export interface GetTriggerRequest__Output {
  'name': (string);
}
