// Original file: proto/muster/v1/types.proto


export interface MigInstance {
  'parentUuid'?: (string);
  'profile'?: (string);
  'gpuInstanceId'?: (number);
  'computeInstanceId'?: (number);
}

export interface MigInstance__Output {
  'parentUuid': (string);
  'profile': (string);
  'gpuInstanceId': (number);
  'computeInstanceId': (number);
}
