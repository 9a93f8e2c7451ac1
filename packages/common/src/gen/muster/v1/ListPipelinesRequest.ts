// Original file: proto/muster/v1/muster.proto


export interface ListPipelinesRequest {
  'active'?: (boolean);
  'limit'?: (number);
  '_limit'?: "limit";
}

export interface ListPipelinesRequest__Output {
  'active': (boolean);
  'limit'?: (number);
  '_limit'?: "limit";
}
