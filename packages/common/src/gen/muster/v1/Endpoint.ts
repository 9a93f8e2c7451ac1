// Original file: proto/muster/v1/agent.proto


export interface Endpoint {
  'address'?: (string);
  'network'?: (string);
  'interface'?: (string);
  'speedMbps'?: (number);
  'rdma'?: (boolean);
  '_network'?: "network";
  '_interface'?: "interface";
  '_speedMbps'?: "speedMbps";
}

export interface Endpoint__Output {
  'address': (string);
  'network'?: (string);
  'interface'?: (string);
  'speedMbps'?: (number);
  'rdma': (boolean);
  '_network'?: "network";
  '_interface'?: "interface";
  '_speedMbps'?: "speedMbps";
}
