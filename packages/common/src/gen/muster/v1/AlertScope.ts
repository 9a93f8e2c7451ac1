// Original file: proto/muster/v1/muster.proto


export interface AlertScope {
  'kind'?: (string);
  'jobId'?: (string);
  'labels'?: ({[key: string]: string});
  'project'?: (string);
  'nodes'?: (string)[];
  '_jobId'?: "jobId";
  '_project'?: "project";
}

export interface AlertScope__Output {
  'kind': (string);
  'jobId'?: (string);
  'labels': ({[key: string]: string});
  'project'?: (string);
  'nodes': (string)[];
  '_jobId'?: "jobId";
  '_project'?: "project";
}
