// Original file: proto/muster/v1/muster.proto


export interface Project {
  'name'?: (string);
  'isPrivate'?: (boolean);
}

export interface Project__Output {
  'name': (string);
  'isPrivate': (boolean);
}
