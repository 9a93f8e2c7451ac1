// Original file: proto/muster/v1/types.proto


export interface PendingReason {
  'kind'?: (string);
  'message'?: (string);
  'remedy'?: (string);
}

export interface PendingReason__Output {
  'kind': (string);
  'message': (string);
  'remedy': (string);
}
