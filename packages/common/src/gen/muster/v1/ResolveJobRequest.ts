// Original file: proto/muster/v1/muster.proto


export interface ResolveJobRequest {
  'reference'?: (string);
}

export interface ResolveJobRequest__Output {
  'reference': (string);
}
