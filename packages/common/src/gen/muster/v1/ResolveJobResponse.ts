// Original file: proto/muster/v1/muster.proto


export interface ResolveJobResponse {
  'jobId'?: (string);
  'arrayId'?: (string);
  'arraySize'?: (number);
  'name'?: (string);
}

export interface ResolveJobResponse__Output {
  'jobId': (string);
  'arrayId': (string);
  'arraySize': (number);
  'name': (string);
}
