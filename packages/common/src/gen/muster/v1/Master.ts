// Original file: proto/muster/v1/agent.proto


export interface Master {
  'addr'?: (string);
  'port'?: (number);
}

export interface Master__Output {
  'addr': (string);
  'port': (number);
}
