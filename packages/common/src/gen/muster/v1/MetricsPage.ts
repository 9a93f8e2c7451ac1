// Original file: proto/muster/v1/agent.proto

import type { Long } from '@grpc/proto-loader';

export interface MetricsPage {
  'pageId'?: (number | string | Long);
  'text'?: (string);
}

export interface MetricsPage__Output {
  'pageId': (number);
  'text': (string);
}
