// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface AlertEpisode {
  'id'?: (string);
  'alert'?: (string);
  'subject'?: (string);
  'subjectName'?: (string);
  'message'?: (string);
  'firedAtMs'?: (number | string | Long);
  'notifiedAtMs'?: (number | string | Long);
  'acknowledgedAtMs'?: (number | string | Long);
  'acknowledgedBy'?: (string);
  'project'?: (string);
  '_notifiedAtMs'?: "notifiedAtMs";
  '_acknowledgedAtMs'?: "acknowledgedAtMs";
  '_acknowledgedBy'?: "acknowledgedBy";
  '_project'?: "project";
}

export interface AlertEpisode__Output {
  'id': (string);
  'alert': (string);
  'subject': (string);
  'subjectName': (string);
  'message': (string);
  'firedAtMs': (number);
  'notifiedAtMs'?: (number);
  'acknowledgedAtMs'?: (number);
  'acknowledgedBy'?: (string);
  'project'?: (string);
  '_notifiedAtMs'?: "notifiedAtMs";
  '_acknowledgedAtMs'?: "acknowledgedAtMs";
  '_acknowledgedBy'?: "acknowledgedBy";
  '_project'?: "project";
}
