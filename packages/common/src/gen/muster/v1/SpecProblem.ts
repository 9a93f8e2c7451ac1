// Original file: proto/muster/v1/muster.proto


export interface SpecProblem {
  'path'?: (string);
  'message'?: (string);
  'expected'?: (string);
  'suggestion'?: (string);
  '_expected'?: "expected";
  '_suggestion'?: "suggestion";
}

export interface SpecProblem__Output {
  'path': (string);
  'message': (string);
  'expected'?: (string);
  'suggestion'?: (string);
  '_expected'?: "expected";
  '_suggestion'?: "suggestion";
}
