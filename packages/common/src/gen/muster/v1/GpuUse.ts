// Original file: proto/muster/v1/types.proto


export interface GpuUse {
  'uuid'?: (string);
  'jobId'?: (string);
  'attempt'?: (number);
}

export interface GpuUse__Output {
  'uuid': (string);
  'jobId': (string);
  'attempt': (number);
}
