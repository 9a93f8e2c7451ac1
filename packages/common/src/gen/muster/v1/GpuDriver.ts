// Original file: proto/muster/v1/types.proto


export interface GpuDriver {
  'source'?: (string);
  'profilingSource'?: (string);
  'driverVersion'?: (string);
  'cudaVersion'?: (string);
  '_profilingSource'?: "profilingSource";
  '_driverVersion'?: "driverVersion";
  '_cudaVersion'?: "cudaVersion";
}

export interface GpuDriver__Output {
  'source': (string);
  'profilingSource'?: (string);
  'driverVersion'?: (string);
  'cudaVersion'?: (string);
  '_profilingSource'?: "profilingSource";
  '_driverVersion'?: "driverVersion";
  '_cudaVersion'?: "cudaVersion";
}
