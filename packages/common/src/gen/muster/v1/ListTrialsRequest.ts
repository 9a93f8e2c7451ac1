// Original file: proto/muster/v1/muster.proto


export interface ListTrialsRequest {
  'sweep'?: (string);
  'fromNumber'?: (number);
  'limit'?: (number);
  '_limit'?: "limit";
}

export interface ListTrialsRequest__Output {
  'sweep': (string);
  'fromNumber': (number);
  'limit'?: (number);
  '_limit'?: "limit";
}
