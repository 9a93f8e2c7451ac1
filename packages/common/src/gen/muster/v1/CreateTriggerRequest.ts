// Original file: proto/muster/v1/muster.proto


export interface CreateTriggerRequest {
  'name'?: (string);
  'specJson'?: (string);
  'paramsJson'?: (string);
  'noCache'?: (boolean);
  'overlap'?: (string);
  'cron'?: (string);
  'timeZone'?: (string);
  'missed'?: (string);
  'dryRun'?: (boolean);
  'webhook'?: (boolean);
  'condition'?: (string);
  'directory'?: (string);
  '_overlap'?: "overlap";
  '_cron'?: "cron";
  '_timeZone'?: "timeZone";
  '_missed'?: "missed";
  '_condition'?: "condition";
  '_directory'?: "directory";
}

export interface CreateTriggerRequest__Output {
  'name': (string);
  'specJson': (string);
  'paramsJson': (string);
  'noCache': (boolean);
  'overlap'?: (string);
  'cron'?: (string);
  'timeZone'?: (string);
  'missed'?: (string);
  'dryRun': (boolean);
  'webhook': (boolean);
  'condition'?: (string);
  'directory'?: (string);
  '_overlap'?: "overlap";
  '_cron'?: "cron";
  '_timeZone'?: "timeZone";
  '_missed'?: "missed";
  '_condition'?: "condition";
  '_directory'?: "directory";
}
