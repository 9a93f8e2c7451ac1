// Original file: proto/muster/v1/muster.proto

import type { PipelineStep as _muster_v1_PipelineStep, PipelineStep__Output as _muster_v1_PipelineStep__Output } from '../../muster/v1/PipelineStep.ts';
import type { Long } from '@grpc/proto-loader';

export interface PipelineRun {
  'id'?: (string);
  'name'?: (string);
  'user'?: (string);
  'project'?: (string);
  'state'?: (string);
  'reason'?: (string);
  'spec'?: (string);
  'params'?: (string);
  'rerunOf'?: (string);
  'createdAtMs'?: (number | string | Long);
  'endedAtMs'?: (number | string | Long);
  'steps'?: (_muster_v1_PipelineStep)[];
  'trigger'?: (string);
  '_reason'?: "reason";
  '_rerunOf'?: "rerunOf";
  '_endedAtMs'?: "endedAtMs";
  '_trigger'?: "trigger";
}

export interface PipelineRun__Output {
  'id': (string);
  'name': (string);
  'user': (string);
  'project': (string);
  'state': (string);
  'reason'?: (string);
  'spec': (string);
  'params': (string);
  'rerunOf'?: (string);
  'createdAtMs': (number);
  'endedAtMs'?: (number);
  'steps': (_muster_v1_PipelineStep__Output)[];
  'trigger'?: (string);
  '_reason'?: "reason";
  '_rerunOf'?: "rerunOf";
  '_endedAtMs'?: "endedAtMs";
  '_trigger'?: "trigger";
}
