/** What the data of events about phases are made of. Plain data. */

import { attemptNumber, resume } from './eventShapes.ts';
import { type Members, mapOf, nullable, oneOf, real, textShape, whole } from './jsonShapes.ts';
import { phaseUnits, phaseVerdicts } from './phases.ts';

/** Which phase of a job. */
const phasePlace = {
  attempt: attemptNumber,
  phase: textShape('curated'),
  index: whole(1),
  phases: whole(4),
  unit: oneOf(phaseUnits),
} as const satisfies Members;
const phaseValues = mapOf(nullable(real(2.8)), { eval_loss: 2.8 });
export const phaseStartData = {
  ...phasePlace,
  start: whole(1_000),
  end: whole(1_500),
  resume: nullable(resume),
} as const satisfies Members;
export const phaseExtendedData = {
  ...phasePlace,
  verdict: oneOf(phaseVerdicts, 'unmet'),
  values: phaseValues,
  extensions: whole(1),
  extensionsMax: whole(3),
  end: whole(1_700),
} as const satisfies Members;
export const phaseEndData = {
  ...phasePlace,
  verdict: nullable(oneOf(phaseVerdicts)),
  values: phaseValues,
  step: nullable(real(1_500)),
  tokens: nullable(real(98_304_000)),
  end: whole(1_500),
  checkpoint: nullable(resume),
  next: oneOf(['next', 'succeeded', 'failed']),
} as const satisfies Members;
