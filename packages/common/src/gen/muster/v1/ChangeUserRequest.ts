// Original file: proto/muster/v1/muster.proto


export interface ChangeUserRequest {
  'name'?: (string);
  'role'?: (string);
  'projects'?: (string)[];
  '_role'?: "role";
}

export interface ChangeUserRequest__Output {
  'name': (string);
  'role'?: (string);
  'projects': (string)[];
  '_role'?: "role";
}
