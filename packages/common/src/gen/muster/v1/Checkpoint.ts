// Original file: proto/muster/v1/types.proto

import type { CheckpointEvaluation as _muster_v1_CheckpointEvaluation, CheckpointEvaluation__Output as _muster_v1_CheckpointEvaluation__Output } from '../../muster/v1/CheckpointEvaluation.ts';
import type { Long } from '@grpc/proto-loader';

export interface Checkpoint {
  'name'?: (string);
  'version'?: (string);
  'step'?: (number | string | Long);
  'format'?: (string);
  'bytes'?: (number | string | Long);
  'files'?: (number);
  'savedAtMs'?: (number | string | Long);
  'saveDurationMs'?: (number | string | Long);
  'metrics'?: ({[key: string]: number | string});
  'digest'?: (string);
  'verdict'?: (string);
  'depth'?: (string);
  'problem'?: (string);
  'attempt'?: (number);
  'node'?: (string);
  'shared'?: (boolean);
  'suspect'?: (boolean);
  'reread'?: (boolean);
  'diverged'?: (boolean);
  'evaluation'?: (_muster_v1_CheckpointEvaluation | null);
  'fingerprint'?: (string);
  'found'?: (boolean);
  'saverUnknown'?: (boolean);
  '_step'?: "step";
  '_saveDurationMs'?: "saveDurationMs";
  '_digest'?: "digest";
  '_depth'?: "depth";
  '_problem'?: "problem";
  '_diverged'?: "diverged";
  '_fingerprint'?: "fingerprint";
  '_found'?: "found";
  '_saverUnknown'?: "saverUnknown";
}

export interface Checkpoint__Output {
  'name': (string);
  'version': (string);
  'step'?: (number);
  'format': (string);
  'bytes': (number);
  'files': (number);
  'savedAtMs': (number);
  'saveDurationMs'?: (number);
  'metrics': ({[key: string]: number});
  'digest'?: (string);
  'verdict': (string);
  'depth'?: (string);
  'problem'?: (string);
  'attempt': (number);
  'node': (string);
  'shared': (boolean);
  'suspect': (boolean);
  'reread': (boolean);
  'diverged'?: (boolean);
  'evaluation': (_muster_v1_CheckpointEvaluation__Output | null);
  'fingerprint'?: (string);
  'found'?: (boolean);
  'saverUnknown'?: (boolean);
  '_step'?: "step";
  '_saveDurationMs'?: "saveDurationMs";
  '_digest'?: "digest";
  '_depth'?: "depth";
  '_problem'?: "problem";
  '_diverged'?: "diverged";
  '_fingerprint'?: "fingerprint";
  '_found'?: "found";
  '_saverUnknown'?: "saverUnknown";
}
