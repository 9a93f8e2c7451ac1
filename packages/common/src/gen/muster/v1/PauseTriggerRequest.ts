// Original file: proto/muster/v1/muster.proto


export interface PauseTriggerRequest {
  'name'?: (string);
}

export interface PauseTriggerRequest__Output {
  'name': (string);
}
