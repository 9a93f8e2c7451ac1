// Original file: proto/muster/v1/agent.proto

import type { PathResult as _muster_v1_PathResult, PathResult__Output as _muster_v1_PathResult__Output } from '../../muster/v1/PathResult.ts';
import type { PreflightResult as _muster_v1_PreflightResult, PreflightResult__Output as _muster_v1_PreflightResult__Output } from '../../muster/v1/PreflightResult.ts';

export interface PathFindings {
  'round'?: (number);
  'paths'?: (_muster_v1_PathResult)[];
  'preflight'?: (_muster_v1_PreflightResult | null);
}

export interface PathFindings__Output {
  'round': (number);
  'paths': (_muster_v1_PathResult__Output)[];
  'preflight': (_muster_v1_PreflightResult__Output | null);
}
