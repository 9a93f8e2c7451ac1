// Original file: proto/muster/v1/muster.proto

import type { SpecProblem as _muster_v1_SpecProblem, SpecProblem__Output as _muster_v1_SpecProblem__Output } from '../../muster/v1/SpecProblem.ts';

export interface SpecProblems {
  'problems'?: (_muster_v1_SpecProblem)[];
}

export interface SpecProblems__Output {
  'problems': (_muster_v1_SpecProblem__Output)[];
}
