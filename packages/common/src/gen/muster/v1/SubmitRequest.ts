// Original file: proto/muster/v1/muster.proto


export interface SubmitRequest {
  'specJson'?: (string);
  'requestId'?: (string);
  'arraySize'?: (number);
  'dryRun'?: (boolean);
  'resumeFromJob'?: (string);
  'resumeFromPath'?: (string);
  '_arraySize'?: "arraySize";
  '_resumeFromJob'?: "resumeFromJob";
  '_resumeFromPath'?: "resumeFromPath";
}

export interface SubmitRequest__Output {
  'specJson': (string);
  'requestId': (string);
  'arraySize'?: (number);
  'dryRun': (boolean);
  'resumeFromJob'?: (string);
  'resumeFromPath'?: (string);
  '_arraySize'?: "arraySize";
  '_resumeFromJob'?: "resumeFromJob";
  '_resumeFromPath'?: "resumeFromPath";
}
