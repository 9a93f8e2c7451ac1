// Original file: proto/muster/v1/muster.proto


export interface TokenBudget {
  'gpuHours'?: (number | string);
  'gpus'?: (number);
  'jobs'?: (number);
  'jobsTotal'?: (number);
  'priority'?: (number);
  '_gpuHours'?: "gpuHours";
  '_gpus'?: "gpus";
  '_jobs'?: "jobs";
  '_jobsTotal'?: "jobsTotal";
  '_priority'?: "priority";
}

export interface TokenBudget__Output {
  'gpuHours'?: (number);
  'gpus'?: (number);
  'jobs'?: (number);
  'jobsTotal'?: (number);
  'priority'?: (number);
  '_gpuHours'?: "gpuHours";
  '_gpus'?: "gpus";
  '_jobs'?: "jobs";
  '_jobsTotal'?: "jobsTotal";
  '_priority'?: "priority";
}
