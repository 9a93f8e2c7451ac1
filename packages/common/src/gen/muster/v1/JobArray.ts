// Original file: proto/muster/v1/muster.proto


export interface JobArray {
  'id'?: (string);
  'name'?: (string);
  'size'?: (number);
}

export interface JobArray__Output {
  'id': (string);
  'name': (string);
  'size': (number);
}
