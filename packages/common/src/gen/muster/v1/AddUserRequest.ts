// Original file: proto/muster/v1/muster.proto


export interface AddUserRequest {
  'name'?: (string);
  'role'?: (string);
  'projects'?: (string)[];
}

export interface AddUserRequest__Output {
  'name': (string);
  'role': (string);
  'projects': (string)[];
}
