// Original file: proto/muster/v1/muster.proto


export interface DeleteAlertRequest {
  'name'?: (string);
}

export interface DeleteAlertRequest__Output {
  'name': (string);
}
