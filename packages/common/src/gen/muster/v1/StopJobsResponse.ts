// Original file: proto/muster/v1/muster.proto

import type { Job as _muster_v1_Job, Job__Output as _muster_v1_Job__Output } from '../../muster/v1/Job.ts';

export interface StopJobsResponse {
  'jobs'?: (_muster_v1_Job)[];
  'total'?: (number);
}

export interface StopJobsResponse__Output {
  'jobs': (_muster_v1_Job__Output)[];
  'total': (number);
}
