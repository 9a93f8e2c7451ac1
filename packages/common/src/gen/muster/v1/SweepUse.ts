// Original file: proto/muster/v1/muster.proto


export interface SweepUse {
  'trials'?: (number);
  'trialsLimit'?: (number);
  'gpuHours'?: (number | string);
  'gpuHoursLimit'?: (number | string);
  'usd'?: (number | string);
  'usdLimit'?: (number | string);
  'wallClockHours'?: (number | string);
  'wallClockHoursLimit'?: (number | string);
  '_gpuHoursLimit'?: "gpuHoursLimit";
  '_usd'?: "usd";
  '_usdLimit'?: "usdLimit";
  '_wallClockHoursLimit'?: "wallClockHoursLimit";
}

export interface SweepUse__Output {
  'trials': (number);
  'trialsLimit': (number);
  'gpuHours': (number);
  'gpuHoursLimit'?: (number);
  'usd'?: (number);
  'usdLimit'?: (number);
  'wallClockHours': (number);
  'wallClockHoursLimit'?: (number);
  '_gpuHoursLimit'?: "gpuHoursLimit";
  '_usd'?: "usd";
  '_usdLimit'?: "usdLimit";
  '_wallClockHoursLimit'?: "wallClockHoursLimit";
}
