// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface Cluster {
  'id'?: (string);
  'version'?: (string);
  'lastEventSeq'?: (number | string | Long);
  'nodesOnline'?: (number);
  'nodesTotal'?: (number);
  'jobsQueued'?: (number);
  'jobsActive'?: (number);
  'pausedBecause'?: (string);
  'maintenanceMs'?: (number | string | Long);
  'clockProblem'?: (string);
}

export interface Cluster__Output {
  'id': (string);
  'version': (string);
  'lastEventSeq': (number);
  'nodesOnline': (number);
  'nodesTotal': (number);
  'jobsQueued': (number);
  'jobsActive': (number);
  'pausedBecause': (string);
  'maintenanceMs': (number);
  'clockProblem': (string);
}
