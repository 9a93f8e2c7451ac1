// Original file: proto/muster/v1/muster.proto


export interface WatchMetricsRequest {
  'jobId'?: (string);
  'name'?: (string);
  'attempt'?: (number);
  'node'?: (string);
  'user'?: (string);
  'project'?: (string);
  'follow'?: (boolean);
  'startTime'?: (string);
  'position'?: (string);
  '_attempt'?: "attempt";
  '_node'?: "node";
  '_user'?: "user";
  '_project'?: "project";
  '_startTime'?: "startTime";
  '_position'?: "position";
}

export interface WatchMetricsRequest__Output {
  'jobId': (string);
  'name': (string);
  'attempt'?: (number);
  'node'?: (string);
  'user'?: (string);
  'project'?: (string);
  'follow': (boolean);
  'startTime'?: (string);
  'position'?: (string);
  '_attempt'?: "attempt";
  '_node'?: "node";
  '_user'?: "user";
  '_project'?: "project";
  '_startTime'?: "startTime";
  '_position'?: "position";
}
