// Original file: proto/muster/v1/types.proto

import type { Long } from '@grpc/proto-loader';

export interface Event {
  'seq'?: (number | string | Long);
  'id'?: (string);
  'kind'?: (string);
  'subject'?: (string);
  'subjectSeq'?: (number | string | Long);
  'timeMs'?: (number | string | Long);
  'cloudEvent'?: (string);
}

export interface Event__Output {
  'seq': (number);
  'id': (string);
  'kind': (string);
  'subject': (string);
  'subjectSeq': (number);
  'timeMs': (number);
  'cloudEvent': (string);
}
