// Original file: proto/muster/v1/muster.proto


export interface TrainingStatus {
  'markdown'?: (string);
}

export interface TrainingStatus__Output {
  'markdown': (string);
}
