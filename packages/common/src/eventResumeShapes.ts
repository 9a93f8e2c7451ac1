/** What the data of events about the resume of an attempt are made of. Plain data. */

import { attemptNumber, node, resume } from './eventShapes.ts';
import { type Members, nullable, textShape } from './jsonShapes.ts';

export const resumeChosenData = {
  attempt: attemptNumber,
  node,
  resume: nullable(resume),
  planned: nullable(resume),
  why: textShape('found on disk; gpu-1 had reported step 600'),
} as const satisfies Members;
