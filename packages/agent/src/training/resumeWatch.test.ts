import { expect, test } from 'vitest';
import { ResumeWatch } from './resumeWatch.ts';

interface Printed {
  readonly offered: number | null;
  readonly steps: readonly number[];
  readonly epoch?: number;
  readonly isOfBar?: boolean;
}

/** @returns the kind and the step of the finding, and after which line it came */
function finding({ offered, steps, epoch, isOfBar = false }: Printed): readonly unknown[] | null {
  const watch = new ResumeWatch(offered);
  const found = steps.map((step) => watch.row({ step, epoch: epoch ?? null, isOfBar }));
  const at = found.findIndex((each) => each !== null);
  expect(found.filter((each) => each !== null).length).toBeLessThan(2);
  return at === -1 ? null : [found[at]?.kind, found[at]?.step, at];
}

test.each<readonly [string, Printed, readonly unknown[]]>([
  ['the step after the checkpoint', { offered: 997, steps: [998] }, ['resume_confirmed', 998, 0]],
  ['the step of the checkpoint', { offered: 997, steps: [997, 998] }, ['resume_confirmed', 997, 1]],
  ['one step of two lines', { offered: 100, steps: [100, 100, 110] }, ['resume_confirmed', 100, 2]],
  ['every tenth step', { offered: 100, steps: [110, 120] }, ['resume_confirmed', 110, 1]],
  ['a checkpoint without a step', { offered: null, steps: [100, 110] }, ['resume_confirmed', 100, 1]],
  ['a progress bar', { offered: 100, steps: [0, 110, 120], isOfBar: true }, ['resume_confirmed', 110, 2]],
  ['steps within a later epoch', { offered: 5, steps: [6], epoch: 3 }, ['resume_confirmed', 6, 0]],
])('confirmed by %s', (_name, printed, expected) => expect(finding(printed)).toEqual(expected));

test.each<readonly [string, Printed, readonly unknown[]]>([
  ['step 0', { offered: 997, steps: [0] }, ['resume_ignored', 0, 0]],
  ['step 1', { offered: 997, steps: [1] }, ['resume_ignored', 1, 0]],
  ['step 0 after a checkpoint without a step', { offered: null, steps: [0] }, ['resume_ignored', 0, 0]],
  ['a step far before', { offered: 997, steps: [10] }, ['resume_ignored', 10, 0]],
  ['the first of every 60th', { offered: 100, steps: [60, 120] }, ['resume_ignored', 60, 1]],
  ['a progress bar', { offered: 100, steps: [0, 10], isOfBar: true }, ['resume_ignored', 10, 1]],
  ['the first epoch', { offered: 100, steps: [10], epoch: 0.01 }, ['resume_ignored', 10, 0]],
])('ignored by %s', (_name, printed, expected) => expect(finding(printed)).toEqual(expected));

test.each<readonly [string, Printed]>([
  ['every 500th step, and checkpoints as often', { offered: 500, steps: [500, 1_000] }],
  ['a checkpoint of the first step', { offered: 1, steps: [1, 2] }],
  ['a checkpoint of step 2', { offered: 2, steps: [1, 2] }],
  ['a checkpoint that the program has chosen itself', { offered: 997, steps: [900, 901] }],
  ['one line', { offered: 997, steps: [1_010] }],
  ['no step of a checkpoint, and a first line like one from scratch', { offered: null, steps: [10, 20] }],
  ['steps that are counted in each epoch', { offered: 997, steps: [0, 10], epoch: 3 }],
  ['steps that go back', { offered: 997, steps: [1_010, 0, 1] }],
])('nothing is claimed of %s', (_name, printed) => expect(finding(printed)).toBeNull());
