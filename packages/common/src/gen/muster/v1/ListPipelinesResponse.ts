// Original file: proto/muster/v1/muster.proto

import type { PipelineRun as _muster_v1_PipelineRun, PipelineRun__Output as _muster_v1_PipelineRun__Output } from '../../muster/v1/PipelineRun.ts';

export interface ListPipelinesResponse {
  'runs'?: (_muster_v1_PipelineRun)[];
  'more'?: (boolean);
}

export interface ListPipelinesResponse__Output {
  'runs': (_muster_v1_PipelineRun__Output)[];
  'more': (boolean);
}
