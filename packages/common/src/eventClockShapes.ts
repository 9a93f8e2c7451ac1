/** What the data of events about the coordinator's clock are made of. Plain data. */

import { type Members, oneOf, real } from './jsonShapes.ts';

export const clockSteppedData = {
  byMs: real(8_640_000_000),
} as const satisfies Members;
export const clockSettledData = {
  by: oneOf(['agreement', 'kernel', 'agents', 'admin']),
  setByMs: real(0),
  forMs: real(60_000),
} as const satisfies Members;
