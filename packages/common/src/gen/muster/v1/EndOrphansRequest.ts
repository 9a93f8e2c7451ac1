// Original file: proto/muster/v1/muster.proto


export interface EndOrphansRequest {
  'node'?: (string);
}

export interface EndOrphansRequest__Output {
  'node': (string);
}
