// Original file: proto/muster/v1/agent.proto


export interface Continuity {
  'token'?: (string);
  'hostName'?: (string);
  'firmwareUuid'?: (string);
  'cardAddresses'?: (string)[];
  'previousToken'?: (string);
  '_token'?: "token";
  '_firmwareUuid'?: "firmwareUuid";
  '_previousToken'?: "previousToken";
}

export interface Continuity__Output {
  'token'?: (string);
  'hostName': (string);
  'firmwareUuid'?: (string);
  'cardAddresses': (string)[];
  'previousToken'?: (string);
  '_token'?: "token";
  '_firmwareUuid'?: "firmwareUuid";
  '_previousToken'?: "previousToken";
}
