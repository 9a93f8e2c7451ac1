// Original file: proto/muster/v1/muster.proto


export interface ExtendSweepRequest {
  'sweep'?: (string);
  'trials'?: (number);
  'requestId'?: (string);
}

export interface ExtendSweepRequest__Output {
  'sweep': (string);
  'trials': (number);
  'requestId': (string);
}
