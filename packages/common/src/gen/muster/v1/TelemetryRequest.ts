// Original file: proto/muster/v1/agent.proto

import type { Long } from '@grpc/proto-loader';

export interface TelemetryRequest {
  'pageId'?: (number | string | Long);
}

export interface TelemetryRequest__Output {
  'pageId': (number);
}
