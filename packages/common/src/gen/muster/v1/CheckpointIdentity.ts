// Original file: proto/muster/v1/agent.proto

import type { Long } from '@grpc/proto-loader';

export interface CheckpointIdentity {
  'name'?: (string);
  'version'?: (string);
  'fingerprint'?: (string);
  'bytes'?: (number | string | Long);
  'files'?: (number);
  '_fingerprint'?: "fingerprint";
}

export interface CheckpointIdentity__Output {
  'name': (string);
  'version': (string);
  'fingerprint'?: (string);
  'bytes': (number);
  'files': (number);
  '_fingerprint'?: "fingerprint";
}
