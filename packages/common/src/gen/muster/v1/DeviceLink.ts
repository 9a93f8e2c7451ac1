// Original file: proto/muster/v1/types.proto


export interface DeviceLink {
  'from'?: (string);
  'to'?: (string);
  'kind'?: (string);
}

export interface DeviceLink__Output {
  'from': (string);
  'to': (string);
  'kind': (string);
}
