// Original file: proto/muster/v1/muster.proto

import type { JobState as _muster_v1_JobState, JobState__Output as _muster_v1_JobState__Output } from '../../muster/v1/JobState.ts';
import type { Long } from '@grpc/proto-loader';

export interface ListJobsRequest {
  'states'?: (_muster_v1_JobState)[];
  'arrayId'?: (string);
  'name'?: (string);
  'limit'?: (number);
  'beforeSubmitSeq'?: (number | string | Long);
  'project'?: (string);
  'label'?: (string);
  'sinceMs'?: (number | string | Long);
  'requestId'?: (string);
  'user'?: (string);
  'brief'?: (boolean);
  '_arrayId'?: "arrayId";
  '_name'?: "name";
  '_limit'?: "limit";
  '_beforeSubmitSeq'?: "beforeSubmitSeq";
  '_project'?: "project";
  '_label'?: "label";
  '_sinceMs'?: "sinceMs";
  '_user'?: "user";
  '_requestId'?: "requestId";
}

export interface ListJobsRequest__Output {
  'states': (_muster_v1_JobState__Output)[];
  'arrayId'?: (string);
  'name'?: (string);
  'limit'?: (number);
  'beforeSubmitSeq'?: (number);
  'project'?: (string);
  'label'?: (string);
  'sinceMs'?: (number);
  'requestId'?: (string);
  'user'?: (string);
  'brief': (boolean);
  '_arrayId'?: "arrayId";
  '_name'?: "name";
  '_limit'?: "limit";
  '_beforeSubmitSeq'?: "beforeSubmitSeq";
  '_project'?: "project";
  '_label'?: "label";
  '_sinceMs'?: "sinceMs";
  '_user'?: "user";
  '_requestId'?: "requestId";
}
