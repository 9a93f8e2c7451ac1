// Original file: proto/muster/v1/muster.proto


export interface AdviseRequest {
  'contextJson'?: (string);
}

export interface AdviseRequest__Output {
  'contextJson': (string);
}
