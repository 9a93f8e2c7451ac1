// Original file: proto/muster/v1/agent.proto

import type { Resume as _muster_v1_Resume, Resume__Output as _muster_v1_Resume__Output } from '../../muster/v1/Resume.ts';

export interface ChosenResume {
  'resume'?: (_muster_v1_Resume | null);
}

export interface ChosenResume__Output {
  'resume': (_muster_v1_Resume__Output | null);
}
