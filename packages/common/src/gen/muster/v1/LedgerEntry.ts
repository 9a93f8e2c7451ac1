// Original file: proto/muster/v1/types.proto


export interface LedgerEntry {
  'kind'?: (string);
  'cause'?: (string);
  'gpuSeconds'?: (number | string);
  '_cause'?: "cause";
}

export interface LedgerEntry__Output {
  'kind': (string);
  'cause'?: (string);
  'gpuSeconds': (number);
  '_cause'?: "cause";
}
