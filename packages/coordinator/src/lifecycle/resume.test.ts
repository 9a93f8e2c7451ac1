import type { Checkpoint } from '@muster/common/checkpoints';
import type { NodeName } from '@muster/common/ids';
import { describe, expect, it, test } from 'vitest';
import type { Job } from '../model.ts';
import { aCheckpoint, aJob, aNode, aSpec } from '../modelFixture.ts';
import { chooseResume, pinnedCheckpoint, resumeCandidates } from './resume.ts';

const jobWith = (checkpoints: readonly Checkpoint[], fields: Partial<Job> = {}) =>
  aJob(1, { checkpoints, ...fields });
const names = (job: Job) => resumeCandidates(job).map(({ name }) => name);

describe('candidates', () => {
  const bad = [
    aCheckpoint(300, { verdict: 'unverified' }),
    aCheckpoint(400, { verdict: 'corrupt' }),
    aCheckpoint(500, { suspect: true }),
  ];

  it('are verified and not suspected, the newest first', () => {
    expect(names(jobWith([aCheckpoint(100), aCheckpoint(200), ...bad]))).toEqual([
      'checkpoint-200',
      'checkpoint-100',
    ]);
  });

  it('are in the order in which they were saved: a later attempt may have begun further back', () => {
    const job = jobWith([aCheckpoint(300), aCheckpoint(150, { attempt: 2 })]);
    expect(names(job)).toEqual(['checkpoint-150', 'checkpoint-300']);
  });

  test.each([
    [250, ['checkpoint-200', 'checkpoint-150', 'checkpoint-100']],
    [200, ['checkpoint-200', 'checkpoint-150', 'checkpoint-100']],
    [199, ['checkpoint-150', 'checkpoint-100']],
    [99, []],
  ])('at or before step %i are the furthest of them first, whichever attempt saved them', (step, wanted) => {
    const saved = [aCheckpoint(100), aCheckpoint(200), aCheckpoint(150, { attempt: 2 }), aCheckpoint(null)];
    expect(names(jobWith([...saved, ...bad], { resumeChoice: { kind: 'step', step } }))).toEqual(wanted);
  });

  it('are none for a job that is to begin from nothing', () => {
    expect(names(jobWith([aCheckpoint(100)], { resumeChoice: { kind: 'start' } }))).toEqual([]);
  });
});

describe('what an attempt begins from', () => {
  const nodes = new Map<string, string>([
    ['node-1', 'boot-1'],
    ['node-2', 'boot-2'],
    ['neighbour', 'boot-1'],
  ]);
  const where = (name: NodeName) => {
    const bootId = nodes.get(name);
    return bootId === undefined ? undefined : { bootId };
  };
  const placed = (...placement: string[]) =>
    placement.map((name) => aNode(name, { bootId: nodes.get(name) ?? '' }));
  const choose = (job: Job, ...placement: string[]) =>
    chooseResume(job, placed(...placement), where)?.name ?? null;

  const own = jobWith([aCheckpoint(100, { node: 'node-2' }), aCheckpoint(200)]);

  it('is the newest that it can read', () => {
    expect(choose(own, 'node-1')).toBe('checkpoint-200');
    expect(choose(own, 'node-2', 'node-1')).toBe('checkpoint-200');
    expect(choose(own, 'node-2')).toBe('checkpoint-100');
    expect(choose(own, 'node-3')).toBeNull();
    expect(chooseResume(own, placed('node-1'), where)).toEqual({ name: 'checkpoint-200', step: 200 });
  });

  it('is anything on storage that all nodes see', () => {
    expect(choose(jobWith([aCheckpoint(200, { shared: true })]), 'node-3')).toBe('checkpoint-200');
  });

  it('may be of another agent of the same machine, in a directory that the job names', () => {
    expect(choose(own, 'neighbour')).toBeNull();
    const spec = aSpec({ checkpoint: { dir: '/checkpoints' } });
    expect(choose({ ...own, spec }, 'neighbour')).toBe('checkpoint-200');
    expect(choose({ ...own, spec }, 'node-3')).toBeNull();
  });

  it('is nothing where there is nothing', () => {
    expect(choose(jobWith([]), 'node-1')).toBeNull();
  });
});

const shared = aCheckpoint(200, { shared: true });
test.each<[string, Job, string | null]>([
  ['has what is newest', jobWith([aCheckpoint(100, { shared: true }), aCheckpoint(200)]), 'node-1'],
  ['need not be one: all see it', jobWith([aCheckpoint(100), shared]), null],
  [
    'has what was chosen',
    jobWith([aCheckpoint(100), shared], { resumeChoice: { kind: 'step', step: 150 } }),
    'node-1',
  ],
  ['is none without checkpoints', jobWith([]), null],
  ['is none for a fresh start', jobWith([aCheckpoint(1)], { resumeChoice: { kind: 'start' } }), null],
  ['does not count for what is corrupt', jobWith([aCheckpoint(1, { verdict: 'corrupt' })]), null],
])('the node that a job waits for %s', (_, job, node) => {
  expect(pinnedCheckpoint(job)?.node ?? null).toBe(node);
});
