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
  'first'?: (number | string);
  'least'?: (number | string);
  'leastStep'?: (number | string);
  'greatest'?: (number | string);
  'greatestStep'?: (number | string);
  'omitted'?: (number | string | Long);
  'mergedPoints'?: (number | string | Long);
  '_last'?: "last";
  '_best'?: "best";
  '_firstStep'?: "firstStep";
  '_lastStep'?: "lastStep";
  '_bestStep'?: "bestStep";
  '_notFiniteStep'?: "notFiniteStep";
  '_first'?: "first";
  '_least'?: "least";
  '_leastStep'?: "leastStep";
  '_greatest'?: "greatest";
  '_greatestStep'?: "greatestStep";
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
  'first'?: (number);
  'least'?: (number);
  'leastStep'?: (number);
  'greatest'?: (number);
  'greatestStep'?: (number);
  'omitted': (number);
  'mergedPoints': (number);
  '_last'?: "last";
  '_best'?: "best";
  '_firstStep'?: "firstStep";
  '_lastStep'?: "lastStep";
  '_bestStep'?: "bestStep";
  '_notFiniteStep'?: "notFiniteStep";
  '_first'?: "first";
  '_least'?: "least";
  '_leastStep'?: "leastStep";
  '_greatest'?: "greatest";
  '_greatestStep'?: "greatestStep";
}
