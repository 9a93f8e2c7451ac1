// Original file: proto/muster/v1/types.proto


export interface CheckpointEvaluation {
  'state'?: (string);
  'jobId'?: (string);
  'metrics'?: ({[key: string]: number | string});
  'cause'?: (string);
  'message'?: (string);
  'best'?: (boolean);
  '_jobId'?: "jobId";
  '_cause'?: "cause";
  '_message'?: "message";
}

export interface CheckpointEvaluation__Output {
  'state': (string);
  'jobId'?: (string);
  'metrics': ({[key: string]: number});
  'cause'?: (string);
  'message'?: (string);
  'best': (boolean);
  '_jobId'?: "jobId";
  '_cause'?: "cause";
  '_message'?: "message";
}
