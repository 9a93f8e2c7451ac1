// Original file: proto/muster/v1/agent.proto


export interface TokenKept {
  'token'?: (string);
  'failed'?: (boolean);
}

export interface TokenKept__Output {
  'token': (string);
  'failed': (boolean);
}
