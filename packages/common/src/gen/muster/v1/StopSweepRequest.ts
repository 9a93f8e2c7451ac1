// Original file: proto/muster/v1/muster.proto


export interface StopSweepRequest {
  'sweep'?: (string);
  'reason'?: (string);
}

export interface StopSweepRequest__Output {
  'sweep': (string);
  'reason': (string);
}
