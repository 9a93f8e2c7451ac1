// Original file: proto/muster/v1/muster.proto


export interface RunTriggerRequest {
  'name'?: (string);
  'paramsJson'?: (string);
  'requestId'?: (string);
}

export interface RunTriggerRequest__Output {
  'name': (string);
  'paramsJson': (string);
  'requestId': (string);
}
