// Original file: proto/muster/v1/types.proto


export interface GpuDriver {
  'source'?: (string);
  'profilingSource'?: (string);
  'driverVersion'?: (string);
  'cudaVersion'?: (string);
}

export interface GpuDriver__Output {
  'source': (string);
  'profilingSource': (string);
  'driverVersion': (string);
  'cudaVersion': (string);
}
