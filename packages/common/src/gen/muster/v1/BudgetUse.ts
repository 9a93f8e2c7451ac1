// Original file: proto/muster/v1/muster.proto


export interface BudgetUse {
  'gpuHours'?: (number | string);
  'gpus'?: (number);
  'jobs'?: (number);
  'jobsTotal'?: (number);
}

export interface BudgetUse__Output {
  'gpuHours': (number);
  'gpus': (number);
  'jobs': (number);
  'jobsTotal': (number);
}
