// Original file: proto/muster/v1/muster.proto

import type { Job as _muster_v1_Job, Job__Output as _muster_v1_Job__Output } from '../../muster/v1/Job.ts';

export interface ExplainJobResponse {
  'job'?: (_muster_v1_Job | null);
  'summary'?: (string);
  'details'?: (string)[];
  'nextSteps'?: (string)[];
}

export interface ExplainJobResponse__Output {
  'job': (_muster_v1_Job__Output | null);
  'summary': (string);
  'details': (string)[];
  'nextSteps': (string)[];
}
