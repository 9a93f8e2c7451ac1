// Original file: proto/muster/v1/muster.proto

import type { Job as _muster_v1_Job, Job__Output as _muster_v1_Job__Output } from '../../muster/v1/Job.ts';

export interface ListJobsResponse {
  'jobs'?: (_muster_v1_Job)[];
  'more'?: (boolean);
  'notStored'?: (number);
}

export interface ListJobsResponse__Output {
  'jobs': (_muster_v1_Job__Output)[];
  'more': (boolean);
  'notStored': (number);
}
