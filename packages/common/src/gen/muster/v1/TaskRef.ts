// Original file: proto/muster/v1/types.proto


export interface TaskRef {
  'jobId'?: (string);
  'attempt'?: (number);
  'nodeRank'?: (number);
}

export interface TaskRef__Output {
  'jobId': (string);
  'attempt': (number);
  'nodeRank': (number);
}
