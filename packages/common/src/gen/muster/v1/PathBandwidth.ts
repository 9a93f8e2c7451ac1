// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface PathBandwidth {
  'peer'?: (string);
  'bytesPerS'?: (number | string | Long);
  'measuredAtMs'?: (number | string | Long);
  'backend'?: (string);
}

export interface PathBandwidth__Output {
  'peer': (string);
  'bytesPerS': (number);
  'measuredAtMs': (number);
  'backend': (string);
}
