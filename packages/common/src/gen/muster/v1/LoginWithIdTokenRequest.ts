// Original file: proto/muster/v1/muster.proto


export interface LoginWithIdTokenRequest {
  'idToken'?: (string);
  'token'?: (string);
}

export interface LoginWithIdTokenRequest__Output {
  'idToken': (string);
  'token': (string);
}
