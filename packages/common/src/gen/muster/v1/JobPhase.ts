// Original file: proto/muster/v1/types.proto

import type { Resume as _muster_v1_Resume, Resume__Output as _muster_v1_Resume__Output } from '../../muster/v1/Resume.ts';
import type { Long } from '@grpc/proto-loader';

export interface JobPhase {
  'name'?: (string);
  'state'?: (string);
  'start'?: (number | string | Long);
  'target'?: (number | string | Long);
  'extensions'?: (number);
  'step'?: (number | string);
  'verdict'?: (string);
  'values'?: ({[key: string]: number | string});
  'checkpoint'?: (_muster_v1_Resume | null);
  'endedAtMs'?: (number | string | Long);
  'tokens'?: (number | string);
  '_step'?: "step";
  '_verdict'?: "verdict";
  '_endedAtMs'?: "endedAtMs";
  '_tokens'?: "tokens";
}

export interface JobPhase__Output {
  'name': (string);
  'state': (string);
  'start': (number);
  'target': (number);
  'extensions': (number);
  'step'?: (number);
  'verdict'?: (string);
  'values': ({[key: string]: number});
  'checkpoint': (_muster_v1_Resume__Output | null);
  'endedAtMs'?: (number);
  'tokens'?: (number);
  '_step'?: "step";
  '_verdict'?: "verdict";
  '_endedAtMs'?: "endedAtMs";
  '_tokens'?: "tokens";
}
