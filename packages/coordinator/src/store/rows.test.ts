/** Rows as earlier versions wrote them: text that was in databases once, and that every later version must read. */
import { emptyInventory } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { aJob } from '../modelFixture.ts';
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
  });
});

test('a job of a version that left no node out', () => {
  const row = jobToRow(aJob(1));
  const { leftOut, ...earlier } = JSON.parse(row.body) as Record<string, unknown>;
  expect(leftOut).toEqual([]);

  expect(jobFromRow({ ...row, body: JSON.stringify(earlier) }, null)).toEqual(aJob(1));
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
  const attempt = {
    number: 1,
    state: 'running',
    tasks: [task, running],
    allocatedAtMs: 1,
    runningAtMs: 1,
    endedAtMs: null,
    cause: null,
    master: null,
  };
  const row = { job_id: 'job_1', number: 1, state: 'running', body: JSON.stringify(attempt) };

  const unknown = { endpoints: [], testPort: null, paths: null, preflight: null, failedAtMs: null };
  expect(attemptFromRow(row)).toEqual({
    ...attempt,
    tasks: [
      { ...task, ...unknown, exit: { ...exit, gpuUsage: null, failure: null } },
      { ...running, ...unknown },
    ],
    // Its agents never fence it.
    leaseMs: null,
    preflight: false,
    network: null,
  });
});

test.each([
  ['claimed', 'ready'],
  ['allocated', 'claimed'],
])('a task that was claimed in an attempt that was %s is %s', (state, now) => {
  const task = {
    nodeRank: 0,
    node: 'node-1',
    gpuUuids: [],
    cpus: 0,
    memoryMb: 0,
    state: 'claimed',
    exit: null,
  };
  const body = JSON.stringify({ number: 1, state, tasks: [task], allocatedAtMs: 1 });

  expect(attemptFromRow({ job_id: 'job_1', number: 1, state, body }).tasks[0]?.state).toBe(now);
});
