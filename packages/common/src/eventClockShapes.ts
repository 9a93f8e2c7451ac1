/** What the data of events about the coordinator's clock, and about what goes by it, are made of. Plain data. */

import { flag, type Members, oneOf, real, whole } from './jsonShapes.ts';

export const clockSteppedData = {
  byMs: real(8_640_000_000),
} as const satisfies Members;
export const clockSettledData = {
  by: oneOf(['agreement', 'kernel', 'agents', 'admin']),
  setByMs: real(0),
  forMs: real(60_000),
} as const satisfies Members;
export const retentionData = {
  jobs: whole(120),
  events: whole(4_000),
  requests: whole(120),
  dueJobs: whole(0),
  isHeldBack: flag(false),
} as const satisfies Members;
