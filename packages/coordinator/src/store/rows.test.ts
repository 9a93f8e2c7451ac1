/** Rows as earlier versions wrote them: text that was in databases once, and that every later version must read. */
import { emptyInventory } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { aJob, anAttempt, queuedState } from '../modelFixture.ts';
import { attemptFromRow, jobFromRow, jobToRow, nodeFromRow } from './rows.ts';
import { earlierNodeBody } from './storeFixture.ts';

test('a node of a version without conditions, and with less of its hardware', () => {
  expect(nodeFromRow({ name: 'node-1', body: earlierNodeBody })).toEqual({
    name: 'node-1',
    instanceId: 'instance',
    bootId: 'boot',
    agentVersion: '0.1.0',
    inventory: {
      ...emptyInventory,
      gpus: [
        {
          uuid: 'GPU-a',
          model: 'NVIDIA H100 80GB HBM3',
          memoryMb: 81_559,
          simulated: false,
          index: null,
          pciBusId: null,
          numaNode: null,
          cpuAffinity: null,
          serial: null,
          mig: null,
        },
      ],
      cpus: 64,
      memoryMb: 262_144,
      addresses: ['10.0.0.1'],
      labels: { rack: 'r1' },
      drivers: ['process'],
    },
    conditions: [],
    joinedAtMs: 1_700_000_000_000,
    drain: null,
  });
});

/** What versions wrote of a job before they knew checkpoints. */
const earlierJobKeys = ['array', 'requeuedFrom', 'failures', 'failedStarts', 'state'];

test('a job of a version that left no node out, and knew no checkpoints', () => {
  const row = jobToRow(aJob(1));
  const body = JSON.parse(row.body) as Record<string, unknown>;
  const earlier = Object.fromEntries(earlierJobKeys.map((key) => [key, body[key]]));
  const state = { kind: 'queued', backoffMs: 0, lastCause: null };

  // It has waited since it was submitted, as far as anybody can tell.
  expect(jobFromRow({ ...row, body: JSON.stringify({ ...earlier, state }) }, null)).toEqual(
    aJob(1, { state: queuedState({ sinceMs: aJob(1).submittedAtMs }) }),
  );
});

const earlierCause = { kind: 'node_lost', message: 'node-1 is gone', nodeRank: 0, node: 'node-1' };
const cause = { ...earlierCause, evidence: null, blame: 'node' };

test.each([
  [{ kind: 'queued', backoffMs: 5, lastCause: earlierCause }, { lastCause: cause }],
  [{ kind: 'failed', endedAtMs: 5, cause: earlierCause }, { cause }],
  [{ kind: 'cancelled', endedAtMs: 5, cause: earlierCause }, { cause }],
  [{ kind: 'stopping', outcome: { next: 'failed', cause: earlierCause } }, { outcome: { cause } }],
  [{ kind: 'stopping', outcome: { next: 'succeeded', cause: null } }, { outcome: { cause: null } }],
])('a cause of a version that kept no evidence (%#)', (state, read) => {
  const row = { ...jobToRow(aJob(1)), last_attempt: 1 };
  const body = { ...JSON.parse(row.body), state, leftOut: [{ node: 'node-1', cause: earlierCause }] };

  const job = jobFromRow({ ...row, body: JSON.stringify(body) }, anAttempt(1));
  expect(job.state).toMatchObject(read);
  expect(job.excludedNodes).toEqual([{ node: 'node-1', cause }]);
});

test('an attempt of a version that did not look at GPUs, tried no paths and fenced nothing', () => {
  const exit = {
    exitCode: 0,
    signal: null,
    oomKilled: false,
    finishedAtMs: 1,
    statusLost: false,
    startError: null,
    logBytes: 0,
  };
  const failure = { source: 'log', consequence: false, rank: 3, message: 'it broke', atBoottimeMs: 1 };
  const task = {
    nodeRank: 0,
    node: 'node-1',
    gpuUuids: ['GPU-a'],
    cpus: 0,
    memoryMb: 0,
    state: 'ended',
    exit,
  };
  const running = { ...task, nodeRank: 1, state: 'running', exit: null };
  const failed = { ...task, nodeRank: 2, exit: { ...exit, startError: earlierCause, failure } };
  const attempt = {
    number: 1,
    state: 'running',
    tasks: [task, running, failed],
    allocatedAtMs: 1,
    runningAtMs: 1,
    endedAtMs: 2,
    cause: earlierCause,
    master: null,
  };
  const row = { job_id: 'job_1', number: 1, state: 'running', body: JSON.stringify(attempt) };

  const unknown = { endpoints: [], testPort: null, paths: null, preflight: null, failedAtMs: null };
  expect(attemptFromRow(row)).toEqual({
    ...attempt,
    tasks: [
      { ...task, ...unknown, exit: { ...exit, gpuUsage: null, failure: null, training: null } },
      { ...running, ...unknown },
      {
        ...failed,
        ...unknown,
        exit: {
          ...{ ...exit, gpuUsage: null, training: null, startError: cause },
          failure: { ...failure, kind: null, blame: null, line: null },
        },
      },
    ],
    // Its agents never fence it.
    leaseMs: null,
    preflight: false,
    network: null,
    cause,
    resume: null,
    savedAtMs: null,
    stoppingAtMs: null,
    savedAfterStop: false,
    signs: [],
    hungToldAtMs: null,
  });
});
