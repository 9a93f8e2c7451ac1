import type { ArrayId } from '@muster/common/ids';
import { expect, test } from 'vitest';
import type { Job } from '../model.ts';
import { aJob, anAttempt, aSpec, jobIdOf } from '../modelFixture.ts';
import { JobGroups } from './jobGroups.ts';

function groupsOf(...jobs: readonly Job[]): JobGroups {
  const groups = new JobGroups();
  for (const job of jobs) groups.note(job);
  return groups;
}

const shown = (groups: JobGroups, drafted: readonly Job[] = []) => {
  const { jobs, behind } = groups.toPlan(new Map(drafted.map((job) => [job.id, job])));
  return jobs.map(({ id }) => [id, behind.get(id) ?? 0] as const);
};
const oneGpu = aSpec({ resources: { gpus: 1 } });
const many = (count: number) =>
  Array.from({ length: count }, (_, index) => aJob(index + 1, { spec: oneGpu }));

test('of jobs that ask for the same, the first are shown, and how many are behind them', () => {
  const groups = groupsOf(...many(100), aJob(101, { spec: aSpec({ resources: { gpus: 2 } }) }));
  const all = shown(groups);
  expect(all).toHaveLength(65);
  expect(all.slice(0, 2)).toEqual([
    [jobIdOf(1), 0],
    [jobIdOf(2), 0],
  ]);
  expect(all[63]).toEqual([jobIdOf(64), 36]);
  expect(all[64]).toEqual([jobIdOf(101), 0]);
  expect(groups.queuedCount()).toBe(101);
});

test('one that has changed is alone, and the next of its equals is shown', () => {
  const jobs = many(100);
  const [first] = jobs;
  if (first === undefined) throw new Error('no job');
  const started = { ...first, lastAttempt: 1, state: { kind: 'starting', attempt: anAttempt(1) } } as const;
  expect(shown(groupsOf(...jobs), [started]).at(-1)).toEqual([jobIdOf(65), 35]);
  const groups = groupsOf(...jobs, started);
  expect(shown(groups)[0]).toEqual([first.id, 0]);
  expect(shown(groups).at(-1)).toEqual([jobIdOf(65), 35]);
});

test('jobs of another priority, that come after others, or of an array are no equals', () => {
  const id = 'arr_000000000001' as ArrayId;
  const place = { array: { id, index: 0, size: 9 } };
  const others: readonly Job[] = [
    aJob(101, { spec: { ...oneGpu, priority: 90 } }),
    aJob(102, { spec: { ...oneGpu, after: [jobIdOf(1)] } }),
    aJob(103, { spec: oneGpu, ...place }),
  ];
  const ids = shown(groupsOf(...many(64), ...others)).map(([each]) => each);
  expect(ids).toEqual(expect.arrayContaining(others.map((job) => job.id)));
  expect(ids).toHaveLength(67);
});
