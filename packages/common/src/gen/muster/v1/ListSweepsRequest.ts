// Original file: proto/muster/v1/muster.proto


export interface ListSweepsRequest {
  'active'?: (boolean);
  'limit'?: (number);
  '_limit'?: "limit";
}

export interface ListSweepsRequest__Output {
  'active': (boolean);
  'limit'?: (number);
  '_limit'?: "limit";
}
