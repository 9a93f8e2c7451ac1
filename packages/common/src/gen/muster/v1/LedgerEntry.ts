// Original file: proto/muster/v1/types.proto


export interface LedgerEntry {
  'kind'?: (string);
  'cause'?: (string);
  'gpuSeconds'?: (number | string);
}

export interface LedgerEntry__Output {
  'kind': (string);
  'cause': (string);
  'gpuSeconds': (number);
}
