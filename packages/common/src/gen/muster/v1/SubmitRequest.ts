// Original file: proto/muster/v1/muster.proto


export interface SubmitRequest {
  'specJson'?: (string);
  'requestId'?: (string);
  'arraySize'?: (number);
  'dryRun'?: (boolean);
}

export interface SubmitRequest__Output {
  'specJson': (string);
  'requestId': (string);
  'arraySize': (number);
  'dryRun': (boolean);
}
