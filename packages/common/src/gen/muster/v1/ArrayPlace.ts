// Original file: proto/muster/v1/types.proto


export interface ArrayPlace {
  'id'?: (string);
  'index'?: (number);
  'size'?: (number);
}

export interface ArrayPlace__Output {
  'id': (string);
  'index': (number);
  'size': (number);
}
