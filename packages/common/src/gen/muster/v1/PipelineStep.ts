// Original file: proto/muster/v1/muster.proto

import type { Artifact as _muster_v1_Artifact, Artifact__Output as _muster_v1_Artifact__Output } from '../../muster/v1/Artifact.ts';
import type { Long } from '@grpc/proto-loader';

export interface PipelineStep {
  'step'?: (string);
  'group'?: (string);
  'index'?: (number);
  'item'?: (string);
  'state'?: (string);
  'tries'?: (number);
  'jobId'?: (string);
  'sweepId'?: (string);
  'cachedFrom'?: (string);
  'reason'?: (string);
  'outputs'?: (_muster_v1_Artifact)[];
  'startedAtMs'?: (number | string | Long);
  'endedAtMs'?: (number | string | Long);
  '_item'?: "item";
  '_jobId'?: "jobId";
  '_sweepId'?: "sweepId";
  '_cachedFrom'?: "cachedFrom";
  '_reason'?: "reason";
  '_startedAtMs'?: "startedAtMs";
  '_endedAtMs'?: "endedAtMs";
}

export interface PipelineStep__Output {
  'step': (string);
  'group': (string);
  'index': (number);
  'item'?: (string);
  'state': (string);
  'tries': (number);
  'jobId'?: (string);
  'sweepId'?: (string);
  'cachedFrom'?: (string);
  'reason'?: (string);
  'outputs': (_muster_v1_Artifact__Output)[];
  'startedAtMs'?: (number);
  'endedAtMs'?: (number);
  '_item'?: "item";
  '_jobId'?: "jobId";
  '_sweepId'?: "sweepId";
  '_cachedFrom'?: "cachedFrom";
  '_reason'?: "reason";
  '_startedAtMs'?: "startedAtMs";
  '_endedAtMs'?: "endedAtMs";
}
