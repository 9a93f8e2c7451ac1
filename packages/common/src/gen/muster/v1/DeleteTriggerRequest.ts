// Original file: proto/muster/v1/muster.proto


export interface DeleteTriggerRequest {
  'name'?: (string);
}

export interface DeleteTriggerRequest__Output {
  'name': (string);
}
