// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface WatchEventsRequest {
  'sinceSeq'?: (number | string | Long);
  'follow'?: (boolean);
  'subject'?: (string);
  '_subject'?: "subject";
}

export interface WatchEventsRequest__Output {
  'sinceSeq': (number);
  'follow': (boolean);
  'subject'?: (string);
  '_subject'?: "subject";
}
