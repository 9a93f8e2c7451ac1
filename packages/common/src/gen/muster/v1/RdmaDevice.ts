// Original file: proto/muster/v1/types.proto


export interface RdmaDevice {
  'name'?: (string);
  'port'?: (number);
  'linkLayer'?: (string);
  'state'?: (string);
  'rateGbps'?: (number | string);
  'nic'?: (string);
  'pciBusId'?: (string);
  'numaNode'?: (number);
  '_rateGbps'?: "rateGbps";
  '_nic'?: "nic";
  '_pciBusId'?: "pciBusId";
  '_numaNode'?: "numaNode";
}

export interface RdmaDevice__Output {
  'name': (string);
  'port': (number);
  'linkLayer': (string);
  'state': (string);
  'rateGbps'?: (number);
  'nic'?: (string);
  'pciBusId'?: (string);
  'numaNode'?: (number);
  '_rateGbps'?: "rateGbps";
  '_nic'?: "nic";
  '_pciBusId'?: "pciBusId";
  '_numaNode'?: "numaNode";
}
