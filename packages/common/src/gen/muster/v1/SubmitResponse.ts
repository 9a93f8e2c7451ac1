// Original file: proto/muster/v1/muster.proto

import type { PendingReason as _muster_v1_PendingReason, PendingReason__Output as _muster_v1_PendingReason__Output } from '../../muster/v1/PendingReason.ts';

export interface SubmitResponse {
  'jobIds'?: (string)[];
  'arrayId'?: (string);
  'repeatedRequest'?: (boolean);
  'wouldWait'?: (_muster_v1_PendingReason | null);
  'wouldStartOn'?: (string)[];
  'waits'?: (_muster_v1_PendingReason | null);
  'arraySize'?: (number);
  'jobsAhead'?: (number);
  '_arrayId'?: "arrayId";
}

export interface SubmitResponse__Output {
  'jobIds': (string)[];
  'arrayId'?: (string);
  'repeatedRequest': (boolean);
  'wouldWait': (_muster_v1_PendingReason__Output | null);
  'wouldStartOn': (string)[];
  'waits': (_muster_v1_PendingReason__Output | null);
  'arraySize': (number);
  'jobsAhead': (number);
  '_arrayId'?: "arrayId";
}
