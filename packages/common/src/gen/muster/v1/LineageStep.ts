// Original file: proto/muster/v1/muster.proto

import type { Artifact as _muster_v1_Artifact, Artifact__Output as _muster_v1_Artifact__Output } from '../../muster/v1/Artifact.ts';
import type { Long } from '@grpc/proto-loader';

export interface LineageStep {
  'run'?: (string);
  'pipeline'?: (string);
  'step'?: (string);
  'index'?: (number);
  'item'?: (string);
  'state'?: (string);
  'jobId'?: (string);
  'nodes'?: (string)[];
  'params'?: (string);
  'code'?: (string);
  'inputs'?: (_muster_v1_Artifact)[];
  'outputs'?: (_muster_v1_Artifact)[];
  'startedAtMs'?: (number | string | Long);
  '_item'?: "item";
  '_jobId'?: "jobId";
  '_code'?: "code";
}

export interface LineageStep__Output {
  'run': (string);
  'pipeline': (string);
  'step': (string);
  'index': (number);
  'item'?: (string);
  'state': (string);
  'jobId'?: (string);
  'nodes': (string)[];
  'params': (string);
  'code'?: (string);
  'inputs': (_muster_v1_Artifact__Output)[];
  'outputs': (_muster_v1_Artifact__Output)[];
  'startedAtMs': (number);
  '_item'?: "item";
  '_jobId'?: "jobId";
  '_code'?: "code";
}
