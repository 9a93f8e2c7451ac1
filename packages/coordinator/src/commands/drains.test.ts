import { describe, expect, it, test } from 'vitest';
import type { Node } from '../model.ts';
import {
  aCondition,
  aJob,
  aNode,
  anAttempt,
  anExit,
  aReport,
  aTask,
  jobIdOf,
  nodeNameOf,
  someMs,
} from '../modelFixture.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { noStoredAlerts } from '../store/alerts.ts';
import { noStoredPipelines } from '../store/pipelines.ts';
import { noStoredSweeps } from '../store/sweeps.ts';
import { drainNode, leavingReason, undrainNode } from './drains.ts';
import { hello, nodeStatus, report } from './nodes.ts';

const name = nodeNameOf('node-1');

function aDraft(fields: Partial<Node> = {}, activeJobs: readonly ReturnType<typeof aJob>[] = []) {
  const state = new ClusterState({
    clusterId: 'test',
    activeJobs,
    unfilledArrays: [],
    outcomes: new Map(),
    successors: new Map(),
    arrayFailures: new Map(),
    nodes: [aNode('node-1', fields)],
    credentials: [],
    users: [],
    projects: [],
    alerts: noStoredAlerts,
    sweeps: noStoredSweeps,
    pipelines: noStoredPipelines,
    evaluations: [],
    budgets: [],
    lastSubmitSeq: 9,
    lastEventSeq: 0,
    subjectSeqs: new Map(),
  });
  return new Draft(state);
}

const emitted = (draft: Draft) => draft.toBatch().events.map(({ kind, data }) => [kind, data]);

describe('a person', () => {
  it('drains a node, with a deadline or without, and undrains it', () => {
    const draft = aDraft();
    drainNode(draft, { node: name, reason: 'kernel update', deadlineMs: null }, someMs);
    expect(draft.node(name)?.drain).toEqual({ reason: 'kernel update', sinceMs: someMs, deadlineMs: null });
    drainNode(draft, { node: name, reason: 'at once', deadlineMs: 0 }, someMs + 5);
    expect(draft.node(name)?.drain).toEqual({ reason: 'at once', sinceMs: someMs, deadlineMs: someMs + 5 });
    undrainNode(draft, name, someMs);
    undrainNode(draft, name, someMs);
    expect(draft.node(name)?.drain).toBeNull();
    expect(emitted(draft)).toEqual([
      ['node.drained', { reason: 'kernel update', deadlineMs: null }],
      ['node.drained', { reason: 'at once', deadlineMs: someMs + 5 }],
      ['node.undrained', {}],
    ]);
    expect(draft.toBatch().nodes).toHaveLength(1);
  });

  it.each([
    ['not_found', { node: nodeNameOf('node-9') }],
    ['invalid', { deadlineMs: -1 }],
    ['invalid', { deadlineMs: 8 * 86_400_000 }],
    ['invalid', { deadlineMs: Number.NaN }],
    ['invalid', { reason: 'x'.repeat(501) }],
  ])('is refused: %s %j', (code, fields) => {
    const command = { node: name, reason: '', deadlineMs: null, ...fields };
    expect(() => drainNode(aDraft(), command, someMs)).toThrow(expect.objectContaining({ code }));
  });

  it('cannot undrain what is not there', () => {
    expect(() => undrainNode(aDraft(), nodeNameOf('node-9'), someMs)).toThrow(/no node node-9/);
  });
});

describe('a machine', () => {
  const status = (draft: Draft, leavingInMs: number | null, nowMs = someMs) =>
    nodeStatus(draft, { name, inventory: null, conditions: [], leavingInMs }, nowMs);
  const connect = (draft: Draft, bootId: string, leavingInMs: number | null = null) => {
    const { joinedAtMs: _, drain: __, ...node } = aNode('node-1');
    const rest = { observed: [], failedAtMs: () => null, lastContactMs: null, leavingInMs };
    hello(draft, { ...node, ...rest, bootId }, someMs);
  };
  const leaving = { reason: leavingReason, sinceMs: someMs, deadlineMs: someMs + 120_000 };

  it('drains its node by saying that it will be switched off, once', () => {
    const draft = aDraft();
    status(draft, 120_000);
    status(draft, 110_000, someMs + 10_000);
    status(draft, null, someMs + 11_000);
    expect(draft.node(name)?.drain).toEqual(leaving);
    expect(emitted(draft)).toEqual([
      ['node.drained', { reason: leavingReason, deadlineMs: someMs + 120_000 }],
    ]);
  });

  it('may have to go sooner', () => {
    const draft = aDraft({ drain: leaving });
    status(draft, 30_000);
    expect(draft.node(name)?.drain?.deadlineMs).toBe(someMs + 30_000);
  });

  it('leaves a person’s word standing, but not for longer than itself', () => {
    const drain = { reason: 'kernel update', sinceMs: someMs - 9, deadlineMs: null };
    const draft = aDraft({ drain });
    status(draft, 30_000);
    expect(draft.node(name)?.drain).toEqual({ ...drain, deadlineMs: someMs + 30_000 });
    connect(draft, 'another boot');
    expect(draft.node(name)?.drain?.reason).toBe('kernel update');
  });

  it.each(['node-1', 'another boot'])('whose agent says nothing of it any more is back: boot %s', (boot) => {
    const draft = aDraft({ drain: leaving });
    const bootId = boot === 'node-1' ? aNode('node-1').bootId : boot;
    connect(draft, bootId, 90_000);
    expect(draft.node(name)?.drain).not.toBeNull();
    connect(draft, bootId);
    expect(draft.node(name)?.drain).toBeNull();
    expect(emitted(draft)).toContainEqual(['node.undrained', {}]);
  });

  it('may say so in its Hello', () => {
    const draft = aDraft();
    connect(draft, 'another boot', 120_000);
    expect(draft.node(name)?.drain).toEqual(leaving);
  });
});

test('what broke under a task is reported with its end', () => {
  const task = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };
  const xid = aCondition('xid_79', {
    severity: 'critical',
    action: 'drain_gpu',
    gpuUuid: 'GPU-node-1-0',
    task,
    evidence: 'NVRM: Xid 79',
  });
  const attempt = anAttempt(1, {
    state: 'running',
    runningAtMs: someMs,
    tasks: [aTask(0, { state: 'running' })],
  });
  const draft = aDraft({ conditions: [xid] }, [
    aJob(1, { lastAttempt: 1, state: { kind: 'running', attempt } }),
  ]);
  const ended = aReport(task, { state: 'ended', exit: anExit({ exitCode: 1 }) });
  report(draft, name, [ended], () => null, someMs + 1);
  expect(draft.job(jobIdOf(1))?.state).toMatchObject({
    kind: 'queued',
    lastCause: { kind: 'gpu_fault', blame: 'gpu', evidence: { text: 'NVRM: Xid 79' } },
  });
});
