// Original file: proto/muster/v1/muster.proto


export interface LoginMethod {
  'issuer'?: (string);
  'clientId'?: (string);
  'scope'?: (string);
  '_issuer'?: "issuer";
}

export interface LoginMethod__Output {
  'issuer'?: (string);
  'clientId': (string);
  'scope': (string);
  '_issuer'?: "issuer";
}
