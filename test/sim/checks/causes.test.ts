/** The check of causes on made-up histories: a directory that another job uses is a reason not to start, and no excuse. */
import type { TaskKey } from '@muster/common/ids';
import type { StoredEvent } from '@muster/coordinator/model';
import { expect, test } from 'vitest';
import { type CauseCheckParts, checkCauses } from './causes.ts';
import { Verdict } from './verdict.ts';

const [first, other, mine] = ['job_000000000001', 'job_000000000002', 'job_000000000003'];

function event(kind: string, subject: string, data: object): StoredEvent {
  return { kind, subject, data, seq: 1, id: 'c-1', subjectSeq: 1, timeMs: 0, by: 'test', peer: '' } as never;
}

/** Two jobs that run `first` again; the one fails because of the other's checkpoints, by its cause. */
function judge(parts: {
  readonly dirs?: Readonly<Record<string, string | undefined>>;
  readonly mineOf?: string;
  readonly otherRan?: boolean;
  readonly message?: string;
}): number {
  const { dirs = { a: '/shared/a' }, mineOf = first, otherRan = true } = parts;
  const { message = `rank 0 on node-1 did not start: it holds checkpoints of ${other}` } = parts;
  const verdict = new Verdict(() => 0);
  const cause = { kind: 'checkpoint_conflict', node: 'node-1', nodeRank: 0, message };
  const names = Object.keys(dirs);
  const events = [
    event('job.submitted', first, { name: names[0] }),
    event('job.submitted', other, { name: names.at(-1), requeuedFrom: first }),
    event('job.submitted', mine, { name: names[0], requeuedFrom: mineOf }),
    event('job.failed', mine, { name: names[0], cause }),
  ];
  const submissions = new Map(
    Object.entries(dirs).map(([name, dir]) => [
      name,
      { file: { checkpoint: dir === undefined ? dir : { dir } } },
    ]),
  );
  checkCauses({
    world: { sites: [] },
    workload: { submissions },
    executions: { exits: new Map(), started: new Set(otherRan ? [`${other}.1.0` as TaskKey] : []) },
    log: { events },
    paths: {},
    verdict,
  } as unknown as CauseCheckParts);
  return verdict.violations.filter(({ guarantee }) => guarantee === 'G7').length;
}

test('a directory that holds checkpoints of another job is a reason not to start', () => {
  expect(judge({})).toBe(0);
});

test.each<[string, Parameters<typeof judge>[0]]>([
  ['the job works in a directory of its own', { dirs: { a: undefined } }],
  ['the other job uses another directory', { dirs: { a: '/shared/a', b: '/shared/b' } }],
  ['the job continues the work of the other', { mineOf: other }],
  ['the other job never ran', { otherRan: false }],
  ['no job is named', { message: 'rank 0 on node-1 did not start: it holds checkpoints' }],
])('it is none when %s', (_, parts) => {
  expect(judge(parts)).toBe(1);
});
