// Original file: proto/muster/v1/agent.proto


export interface Peer {
  'nodeRank'?: (number);
  'node'?: (string);
  'address'?: (string);
  'port'?: (number);
}

export interface Peer__Output {
  'nodeRank': (number);
  'node': (string);
  'address': (string);
  'port': (number);
}
