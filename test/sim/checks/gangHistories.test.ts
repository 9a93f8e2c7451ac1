/** The checks of gangs, paths and retries on made-up histories: each is seen to fail. */
import type { JobId, TaskRef } from '@muster/common/ids';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { StoredEvent } from '@muster/coordinator/model';
import { expect, test } from 'vitest';
import type { Fact } from '../history.ts';
import { ExecutionCheck } from './executions.ts';
import { PathsCheck } from './paths.ts';
import { RetryCheck } from './retries.ts';
import { Verdict } from './verdict.ts';

const job = 'job_000000000001' as JobId;
const file: JobSpecFile = {
  name: 'gang',
  command: ['train'],
  resources: { nodes: 2, gpus: 1 },
  preflight: { min_bandwidth_mbps: 1_000 },
};

/** @param facts each a second after the one before. @returns the violations that the checks report */
function judge(facts: readonly Fact[], spec = file): readonly string[] {
  const verdict = new Verdict(() => 0);
  const executions = new ExecutionCheck(verdict);
  const checks = [new PathsCheck(verdict, () => spec), new RetryCheck(verdict, () => spec)];
  for (const [index, fact] of facts.entries()) {
    executions.see(fact, index * 1_000);
    for (const check of checks) check.see(fact);
  }
  return verdict.violations.map(({ guarantee, what }) => `${guarantee}: ${what}`);
}

const ref = (nodeRank: number, attempt = 1): TaskRef => ({ jobId: job, attempt, nodeRank });

function committed(...events: readonly Pick<StoredEvent, 'kind' | 'subject' | 'data'>[]): Fact {
  const stored = events.map((event) => ({
    ...event,
    seq: 1,
    id: 'c-1',
    subjectSeq: 1,
    timeMs: 0,
    by: 'test',
    peer: '',
  }));
  return { kind: 'committed', events: stored, steps: [], trials: [] };
}

const ofJob = (kind: StoredEvent['kind'], data: object) =>
  committed({ kind, subject: job, data: { name: 'gang', attempt: 1, ...data } });
const allocated = (attempt: number, ...nodes: readonly string[]) =>
  ofJob('attempt.allocated', { attempt, tasks: nodes.map((node) => ({ node, gpuUuids: [] })), resume: null });
const joined = (...nodes: readonly string[]) =>
  committed(
    ...nodes.map((subject) => ({
      kind: 'node.joined' as const,
      subject,
      data: { inventory: { gpus: [{}] } },
    })),
  );
const tried = (from: number, toRank: number, error: string | null = null): Fact => {
  return { kind: 'pathTried', task: ref(from), toRank, port: 1, error };
};
const measured = (from: number, toRank: number, mbps = 10_000): Fact => {
  return { kind: 'pathMeasured', task: ref(from), toRank, mbps };
};
const released = ofJob('attempt.released', {});
const goodPaths = [tried(0, 1), tried(1, 0), measured(0, 1), measured(1, 0)];

test('a gang whose paths were found good may be released', () => {
  expect(judge([allocated(1, 'node-1', 'node-2'), ...goodPaths, released])).toEqual([]);
});

test.each<[string, readonly Fact[]]>([
  ['had not been found good', goodPaths.slice(1)],
  ['had not been found good', [...goodPaths, tried(1, 0, 'connection refused')]],
  ['had not been measured', goodPaths.slice(0, 3)],
  ['is too slow for it', [...goodPaths, measured(0, 1, 999)]],
])('a release whose path %s', (text, paths) => {
  const reported = judge([allocated(1, 'node-1', 'node-2'), ...paths, released]);
  expect(reported).toEqual([expect.stringMatching(new RegExp(`^G3: .*${text}`))]);
});

const cause = { kind: 'image_pull', node: 'node-2', nodeRank: 1, message: 'no image' };
const failedStart = [
  allocated(1, 'node-1', 'node-2'),
  ofJob('job.stopping', { cause }),
  ofJob('attempt.ended', { cause, tasks: [] }),
];

test('a node that an attempt failed on is used again only where there are no others', () => {
  const again = [...failedStart, allocated(2, 'node-1', 'node-2')];
  expect(judge([joined('node-1', 'node-2'), ...again])).toEqual([]);
  const reported = judge([joined('node-1', 'node-2', 'node-3'), ...again]);
  expect(reported).toEqual([
    expect.stringMatching(/^exclusion: .*node-2, on which it had failed, and 2 others/),
  ]);
});

test('nodes of earlier failed starts are no others for a job that keeps failing', () => {
  const stops = (attempt: number, because: object) => [
    ofJob('job.stopping', { attempt, cause: because }),
    ofJob('attempt.ended', { attempt, cause: because, tasks: [] }),
  ];
  const runs = (attempt: number, ...nodes: readonly string[]) => [
    allocated(attempt, ...nodes),
    ...['attempt.released', 'attempt.running'].map((kind) => ofJob(kind as never, { attempt })),
  ];
  const limit = { kind: 'time_limit', node: null, nodeRank: null, message: 'ran for its max_runtime' };
  const requeued = { kind: 'preempted', node: null, nodeRank: null, message: 'requeued by a user' };
  const story = (end: object) =>
    judge([
      joined('node-1', 'node-2', 'node-3'),
      ...runs(1, 'node-1', 'node-2'),
      ...stops(1, end),
      allocated(2, 'node-1', 'node-2'),
      ...stops(2, cause),
      ...runs(3, 'node-1', 'node-3'),
      ...stops(3, end),
      allocated(4, 'node-1', 'node-3'),
      ...stops(4, { ...cause, node: 'node-3' }),
      allocated(5, 'node-1', 'node-3'),
    ]).filter((each) => each.startsWith('exclusion'));
  expect(story(limit)).toEqual([]);
  expect(story(requeued)).toEqual([expect.stringMatching(/^exclusion: .*node-3, on which it had failed/)]);
});

test('a node that an attempt failed on is used again where it alone has the checkpoint', () => {
  const saved = (node: string) => ofJob('checkpoint.saved', { checkpoint: 'step-7', step: 7, node });
  const again = ofJob('attempt.allocated', {
    attempt: 2,
    resume: { name: 'step-7', step: 7 },
    tasks: ['node-2', 'node-1'].map((node) => ({ node, gpuUuids: [] })),
  });
  const story = (node: string, shared: boolean) => {
    const checkpoint = { checkpoint: { dir: '/shared/gang' } };
    const spec = { ...file, ...(shared && checkpoint) };
    return judge([joined('node-1', 'node-2', 'node-3'), saved(node), ...failedStart, again], spec);
  };
  expect(story('node-2', false)).toEqual([]);
  const reported = [expect.stringMatching(/^exclusion: .*node-2, on which it had failed/)];
  expect(story('node-1', false)).toEqual(reported);
  expect(story('node-2', true)).toEqual(reported);
});

test('a node that is silent, and may never return, is no alternative to one that an attempt failed on', () => {
  const of3 = (kind: StoredEvent['kind']) => committed({ kind, subject: 'node-3', data: {} });
  const again = [...failedStart, allocated(2, 'node-1', 'node-2')];
  expect(judge([joined('node-1', 'node-2', 'node-3'), of3('node.silent'), ...again])).toEqual([]);
  const returned = [of3('node.silent'), of3('node.online')];
  expect(judge([joined('node-1', 'node-2', 'node-3'), ...returned, ...again])).toHaveLength(1);
});

test('a cause that names a rank which only followed', () => {
  const task = (nodeRank: number, consequence: boolean) => {
    return { nodeRank, exit: { exitCode: 1, failure: { consequence } } };
  };
  const tasks = [task(0, true), task(1, false)];
  const ended = (nodeRank: number) =>
    ofJob('attempt.ended', { cause: { kind: 'exit_code', nodeRank }, tasks });
  expect(judge([ended(1)])).toEqual([]);
  expect(judge([ended(0)])).toEqual([expect.stringMatching(/^G7: .*because of rank 1.*names rank 0/)]);
});

const start = (attempt: number): Fact => ({
  kind: 'started',
  machine: `node-${attempt}`,
  task: ref(0, attempt),
  nodeCount: 0,
  gpuUuids: [],
  portWasHeld: true,
  phase: null,
  resume: null,
});
const lostEnd = {
  exitCode: null,
  signal: null,
  startError: { kind: 'node_lost', message: 'node-1 has been silent for 11 s and its lease has expired' },
};
const lost = ofJob('task.ended', { nodeRank: 0, exit: lostEnd });
const frozen: Fact = { kind: 'frozen', machine: 'node-1', task: ref(0) };
const thawed: Fact = { kind: 'thawed', machine: 'node-1', task: ref(0) };

test.each<[string, readonly Fact[]]>([
  ['1.0 runs, and its end was recorded', [start(1), lost]],
  ['1.0 was thawed after its end was recorded', [start(1), frozen, lost, thawed]],
  ['1.0 was thawed and executes beside .*2.0', [start(1), frozen, lost, start(2), thawed]],
  ['2.0 was started 1000 ms after .*1.0, which was lost, executed last', [start(1), lost, frozen, start(2)]],
])('G2: %s', (text, facts) => {
  expect(judge(facts)).toContainEqual(expect.stringMatching(new RegExp(`^G2: .*${text}`)));
});

test('a lost task that is frozen is no violation, and its successor may run', () => {
  const reported = judge([start(1), frozen, lost, lost, start(2)]);
  expect(reported.filter((each) => each.startsWith('G2'))).toEqual([]);
});
