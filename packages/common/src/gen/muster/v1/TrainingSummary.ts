// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface TrainingSummary {
  'name'?: (string);
  'unit'?: (string);
  'last'?: (number | string);
  'best'?: (number | string);
  'firstStep'?: (number | string);
  'lastStep'?: (number | string);
  'bestStep'?: (number | string);
  'rows'?: (number | string | Long);
  'notFinite'?: (number | string | Long);
  'notFiniteStep'?: (number | string);
  '_last'?: "last";
  '_best'?: "best";
  '_firstStep'?: "firstStep";
  '_lastStep'?: "lastStep";
  '_bestStep'?: "bestStep";
  '_notFiniteStep'?: "notFiniteStep";
}

export interface TrainingSummary__Output {
  'name': (string);
  'unit': (string);
  'last'?: (number);
  'best'?: (number);
  'firstStep'?: (number);
  'lastStep'?: (number);
  'bestStep'?: (number);
  'rows': (number);
  'notFinite': (number);
  'notFiniteStep'?: (number);
  '_last'?: "last";
  '_best'?: "best";
  '_firstStep'?: "firstStep";
  '_lastStep'?: "lastStep";
  '_bestStep'?: "bestStep";
  '_notFiniteStep'?: "notFiniteStep";
}
