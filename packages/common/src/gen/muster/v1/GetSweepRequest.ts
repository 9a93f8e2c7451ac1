// Original file: proto/muster/v1/muster.proto


export interface GetSweepRequest {
  'sweep'?: (string);
}

export interface GetSweepRequest__Output {
  'sweep': (string);
}
