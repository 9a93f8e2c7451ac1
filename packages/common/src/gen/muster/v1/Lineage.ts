// Original file: proto/muster/v1/muster.proto

import type { LineageStep as _muster_v1_LineageStep, LineageStep__Output as _muster_v1_LineageStep__Output } from '../../muster/v1/LineageStep.ts';

export interface Lineage {
  'subject'?: (string);
  'kind'?: (string);
  'madeBy'?: (_muster_v1_LineageStep)[];
  'usedBy'?: (_muster_v1_LineageStep)[];
}

export interface Lineage__Output {
  'subject': (string);
  'kind': (string);
  'madeBy': (_muster_v1_LineageStep__Output)[];
  'usedBy': (_muster_v1_LineageStep__Output)[];
}
