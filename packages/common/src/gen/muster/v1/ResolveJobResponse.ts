// Original file: proto/muster/v1/muster.proto

import type { JobArray as _muster_v1_JobArray, JobArray__Output as _muster_v1_JobArray__Output } from '../../muster/v1/JobArray.ts';

export interface ResolveJobResponse {
  'jobId'?: (string);
  'array'?: (_muster_v1_JobArray | null);
  '_jobId'?: "jobId";
}

export interface ResolveJobResponse__Output {
  'jobId'?: (string);
  'array': (_muster_v1_JobArray__Output | null);
  '_jobId'?: "jobId";
}
