/** What commands do about nodes that become silent, respond again or were rebooted. */
import { describe, expect, it } from 'vitest';
import type { Job } from '../model.ts';
import { aNode, anExit, aReport, nodeNameOf, someMs } from '../modelFixture.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { noStoredAlerts } from '../store/alerts.ts';
import { noStoredPipelines } from '../store/pipelines.ts';
import { noStoredSweeps } from '../store/sweeps.ts';
import { aGang, crash, type Story } from '../storyFixture.ts';
import { hello, nodeSilent, noteFreezes, report } from './nodes.ts';

/** A cluster of two nodes and this job. */
function withJob({ job }: Story) {
  const state = new ClusterState({
    clusterId: 'test',
    activeJobs: [job],
    unfilledArrays: [],
    outcomes: new Map(),
    successors: new Map(),
    arrayFailures: new Map(),
    nodes: [aNode('node-1'), aNode('node-2')],
    credentials: [],
    users: [],
    projects: [],
    alerts: noStoredAlerts,
    sweeps: noStoredSweeps,
    pipelines: noStoredPipelines,
    evaluations: [],
    budgets: [],
    lastSubmitSeq: 1,
    lastEventSeq: 0,
    subjectSeqs: new Map(),
  });
  const draft = new Draft(state);
  return {
    draft,
    job: (): Job | undefined => draft.job(job.id),
    events: () => draft.toBatch().events.map(({ kind, data }) => ({ kind, data })),
    task: (nodeRank: number) => ({ jobId: job.id, attempt: 1, nodeRank }),
  };
}

const node2 = nodeNameOf('node-2');

/** A Hello from node-2. */
function helloOf(fields: { bootId?: string; lastContactMs?: number | null } = {}) {
  const { joinedAtMs: _, ...identity } = aNode('node-2');
  return {
    ...identity,
    observed: [],
    failedAtMs: () => null,
    leavingInMs: null,
    lastContactMs: null,
    ...fields,
  };
}

describe('a node that was rebooted', () => {
  it.each([
    ['before', 100, 'node_lost'],
    ['after', 900, 'exit_code'],
  ])('and was heard last %s another rank failed is the cause of that, or not', (_, lastContactMs, kind) => {
    const { draft, job } = withJob(
      aGang()
        .allRunning()
        .ended(0, crash, 1, someMs + 500),
    );
    expect(job()?.state).toMatchObject({ kind: 'stopping' });
    hello(draft, helloOf({ bootId: 'second', lastContactMs: someMs + lastContactMs }), someMs + 2_000);

    const ended = draft.toBatch().events.find((event) => event.kind === 'attempt.ended');
    expect(ended?.data).toMatchObject({ cause: { kind } });
  });

  it('has not lost what it says it found ended', () => {
    const { draft, job, task } = withJob(aGang().allRunning());
    const observed = [aReport(task(1), { state: 'ended', exit: anExit() })];
    hello(draft, { ...helloOf({ bootId: 'second' }), observed }, someMs);

    expect(job()?.state).toMatchObject({ kind: 'running' });
  });

  it('of the same boot has lost nothing', () => {
    const { draft, job } = withJob(aGang().allRunning());
    hello(draft, helloOf(), someMs);

    expect(job()?.state.kind).toBe('running');
  });
});

describe('a node that falls silent', () => {
  it('holds back what is not released, and is not excluded for that', () => {
    const { draft, job } = withJob(aGang().allocated().allPrepared().checked(0));
    nodeSilent(draft, node2, someMs);

    expect(job()).toMatchObject({
      state: { kind: 'queued', lastCause: { kind: 'node_lost', node: 'node-2', nodeRank: 1 } },
      failedStarts: 1,
      excludedNodes: [],
    });
  });

  it('is not dead: what was released stays as it is', () => {
    const { draft, job } = withJob(aGang().released());
    const before = job();
    nodeSilent(draft, node2, someMs);

    expect(job()).toBe(before);
  });
});

describe('the report of an end', () => {
  it('that says how long ago the task began is that of its start, too', () => {
    const { draft, events, task } = withJob(aGang().released());
    const began = { state: 'ended', exit: anExit(), runningForMs: 40 } as const;
    report(draft, nodeNameOf('node-1'), [aReport(task(0), began)], () => null, someMs);
    report(draft, node2, [aReport(task(1), began)], () => null, someMs);

    const kinds = events().map(({ kind }) => kind);
    expect(kinds.filter((kind) => !kind.startsWith('task.'))).toEqual([
      'attempt.running',
      'attempt.ended',
      'job.succeeded',
    ]);
  });

  it('carries the moment that its node names, where its clock is known', () => {
    for (const failedAtMs of [someMs - 5_000, null]) {
      const { draft, task } = withJob(aGang().allRunning());
      const reports = [aReport(task(1), { state: 'ended', exit: crash })];
      report(draft, node2, reports, () => failedAtMs, someMs);

      const [stored] = draft.toBatch().attempts;
      expect(stored?.attempt.tasks[1]?.failedAtMs).toBe(failedAtMs ?? someMs);
    }
  });
});

describe('freezes', () => {
  it('are on record by task', () => {
    const { draft, events, task } = withJob(aGang().allRunning());
    noteFreezes(draft, node2, [aReport(task(1), { frozen: true })], someMs);
    noteFreezes(draft, node2, [aReport(task(1), { frozen: false })], someMs);

    const data = { name: 'train', attempt: 1, nodeRank: 1, node: 'node-2' };
    expect(events()).toEqual([
      { kind: 'task.frozen', data },
      { kind: 'task.thawed', data },
    ]);
  });

  it.each([
    ['another’s task', { nodeRank: 0 }],
    ['a task of another attempt', { attempt: 7 }],
    ['a task that there is not', { nodeRank: 5 }],
  ])('of %s are not', (_, fields) => {
    const { draft, task } = withJob(aGang().allRunning());
    noteFreezes(draft, node2, [aReport({ ...task(1), ...fields }, { frozen: true })], someMs);

    expect(draft.isEmpty()).toBe(true);
  });

  it('of a task that has ended meanwhile are not', () => {
    const { draft, task } = withJob(aGang().allRunning().ended(1));
    noteFreezes(draft, node2, [aReport(task(1), { frozen: true })], someMs);

    expect(draft.isEmpty()).toBe(true);
  });
});
