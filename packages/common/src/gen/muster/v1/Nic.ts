// Original file: proto/muster/v1/types.proto


export interface Nic {
  'name'?: (string);
  'state'?: (string);
  'speedMbps'?: (number);
  'addresses'?: (string)[];
  'pciBusId'?: (string);
  'numaNode'?: (number);
  'isVirtual'?: (boolean);
  '_speedMbps'?: "speedMbps";
  '_pciBusId'?: "pciBusId";
  '_numaNode'?: "numaNode";
}

export interface Nic__Output {
  'name': (string);
  'state': (string);
  'speedMbps'?: (number);
  'addresses': (string)[];
  'pciBusId'?: (string);
  'numaNode'?: (number);
  'isVirtual': (boolean);
  '_speedMbps'?: "speedMbps";
  '_pciBusId'?: "pciBusId";
  '_numaNode'?: "numaNode";
}
