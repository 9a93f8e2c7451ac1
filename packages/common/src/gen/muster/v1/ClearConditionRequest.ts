// Original file: proto/muster/v1/muster.proto


export interface ClearConditionRequest {
  'node'?: (string);
  'kind'?: (string);
  'gpuUuid'?: (string);
  '_gpuUuid'?: "gpuUuid";
}

export interface ClearConditionRequest__Output {
  'node': (string);
  'kind': (string);
  'gpuUuid'?: (string);
  '_gpuUuid'?: "gpuUuid";
}
