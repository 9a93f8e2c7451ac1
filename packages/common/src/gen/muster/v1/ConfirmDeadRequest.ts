// Original file: proto/muster/v1/muster.proto


export interface ConfirmDeadRequest {
  'node'?: (string);
}

export interface ConfirmDeadRequest__Output {
  'node': (string);
}
