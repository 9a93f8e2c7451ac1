// Original file: proto/muster/v1/muster.proto


export interface GetLineageRequest {
  'subject'?: (string);
}

export interface GetLineageRequest__Output {
  'subject': (string);
}
