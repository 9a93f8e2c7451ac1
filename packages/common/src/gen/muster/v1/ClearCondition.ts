// Original file: proto/muster/v1/agent.proto


export interface ClearCondition {
  'kind'?: (string);
  'gpuUuid'?: (string);
  '_gpuUuid'?: "gpuUuid";
}

export interface ClearCondition__Output {
  'kind': (string);
  'gpuUuid'?: (string);
  '_gpuUuid'?: "gpuUuid";
}
