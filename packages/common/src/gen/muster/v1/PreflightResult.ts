// Original file: proto/muster/v1/agent.proto

import type { PairBandwidth as _muster_v1_PairBandwidth, PairBandwidth__Output as _muster_v1_PairBandwidth__Output } from '../../muster/v1/PairBandwidth.ts';
import type { Long } from '@grpc/proto-loader';

export interface PreflightResult {
  'error'?: (string);
  'backend'?: (string);
  'pairs'?: (_muster_v1_PairBandwidth)[];
  'allReduceBytesPerS'?: (number | string | Long);
  '_error'?: "error";
  '_allReduceBytesPerS'?: "allReduceBytesPerS";
}

export interface PreflightResult__Output {
  'error'?: (string);
  'backend': (string);
  'pairs': (_muster_v1_PairBandwidth__Output)[];
  'allReduceBytesPerS'?: (number);
  '_error'?: "error";
  '_allReduceBytesPerS'?: "allReduceBytesPerS";
}
