// Original file: proto/muster/v1/muster.proto


export interface Advice {
  'answer'?: (string);
}

export interface Advice__Output {
  'answer': (string);
}
