// Original file: proto/muster/v1/muster.proto

import type { Long } from '@grpc/proto-loader';

export interface WatchEventsRequest {
  'sinceSeq'?: (number | string | Long);
  'follow'?: (boolean);
  'subject'?: (string);
  'newest'?: (number);
  'startTime'?: (string);
  'endTime'?: (string);
  '_subject'?: "subject";
  '_newest'?: "newest";
  '_startTime'?: "startTime";
  '_endTime'?: "endTime";
}

export interface WatchEventsRequest__Output {
  'sinceSeq': (number);
  'follow': (boolean);
  'subject'?: (string);
  'newest'?: (number);
  'startTime'?: (string);
  'endTime'?: (string);
  '_subject'?: "subject";
  '_newest'?: "newest";
  '_startTime'?: "startTime";
  '_endTime'?: "endTime";
}
