/** What the data of events about the resume of an attempt are made of. Plain data. */

import { attemptNumber, node, resume } from './eventShapes.ts';
import { type Members, nullable, objectOf, oneOf, textShape, whole } from './jsonShapes.ts';

export const resumeChosenData = {
  attempt: attemptNumber,
  node,
  resume: nullable(resume),
  planned: nullable(resume),
  why: textShape('found on disk; gpu-1 had reported step 600'),
} as const satisfies Members;

export const requeuedData = {
  from: objectOf(
    {
      kind: oneOf(['newest', 'step', 'name', 'start']),
      'step?': whole(1_200),
      'name?': textShape('step_7.pt.attempt-1'),
    },
    { kind: 'newest' },
  ),
} as const satisfies Members;
