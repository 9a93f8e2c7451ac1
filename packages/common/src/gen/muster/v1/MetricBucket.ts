// Original file: proto/muster/v1/muster.proto


export interface MetricBucket {
  'rows'?: (number);
  'firstStep'?: (number | string);
  'min'?: (number | string);
  'max'?: (number | string);
  'last'?: (number | string);
  '_firstStep'?: "firstStep";
  '_min'?: "min";
  '_max'?: "max";
  '_last'?: "last";
}

export interface MetricBucket__Output {
  'rows': (number);
  'firstStep'?: (number);
  'min'?: (number);
  'max'?: (number);
  'last'?: (number);
  '_firstStep'?: "firstStep";
  '_min'?: "min";
  '_max'?: "max";
  '_last'?: "last";
}
