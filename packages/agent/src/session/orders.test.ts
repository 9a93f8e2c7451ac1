import type { CheckpointFacts } from '@muster/common/checkpoints';
import type { Assignment__Output } from '@muster/common/gen/muster/v1/Assignment';
import type { JobId } from '@muster/common/ids';
import { expect, test } from 'vitest';
import { orderOf } from './orders.ts';
import { taskMessageToWire } from './sessionMessages.ts';

const task = { jobId: 'job_0123456789ab' as JobId, attempt: 2, nodeRank: 0 };
const assigned: Assignment__Output = {
  task: null,
  specJson: '{}',
  nodeCount: 1,
  gpuUuids: [],
  start: null,
  stop: null,
  check: null,
  look: null,
  resume: { name: 'step_10.pt', step: 10 },
  checkpointJobId: 'job_ba9876543210',
  user: 'alice',
  lineage: ['job_ba9876543211', '../elsewhere'],
  batchScale: 0.5,
  lrScale: 0.1,
  quarantine: [{ name: 'step_20.pt', version: 'v1' }],
  doubted: [{ name: 'step_30.pt', version: 'v2' }],
  proof: '7.mac',
};
const assignmentOf = (changes: Partial<Assignment__Output>) => {
  const order = orderOf({ ...assigned, ...changes }, task);
  return 'assignment' in order ? order.assignment : null;
};

test('an assignment says what to begin from, with which adjustments, and what to set aside', () => {
  expect(assignmentOf({})).toMatchObject({
    resume: { name: 'step_10.pt', step: 10 },
    checkpointJobId: 'job_ba9876543210',
    user: 'alice',
    lineage: ['job_ba9876543211'],
    batchScale: 0.5,
    lrScale: 0.1,
    quarantine: [{ name: 'step_20.pt', version: 'v1' }],
    doubted: [{ name: 'step_30.pt', version: 'v2' }],
    proof: '7.mac',
    traceparent: null,
  });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  expect(assignmentOf({ traceparent })).toMatchObject({ traceparent });
});

test.each(['../../etc', 'job_', '/'])('"%s" is no job to name a directory after', (checkpointJobId) => {
  expect(assignmentOf({ checkpointJobId })).toMatchObject({ checkpointJobId: task.jobId });
});

test('a checkpoint and a sign go to the coordinator with their task', () => {
  const wireTask = { jobId: task.jobId, attempt: 2, nodeRank: 0 };
  const checkpoint: CheckpointFacts = {
    name: 'step_10.pt',
    version: 'v',
    step: 10,
    format: 'torch',
    bytes: 5,
    files: 1,
    savedAtMs: 7,

    saveDurationMs: null,
    metrics: { train_loss: 1 },
    digest: null,
    verdict: 'verified',
    depth: 'quick',
    problem: null,
    reread: false,
  };
  const sent = taskMessageToWire({ kind: 'checkpoint', task, checkpoint, shared: true, afterStop: true });
  expect(sent.checkpoint).toMatchObject({
    task: wireTask,
    afterStop: true,
    shared: true,
    checkpoint: { name: 'step_10.pt', step: 10, verdict: 'verified' },
  });
  const sign = { kind: 'nan_loss', step: 5, lastGoodStep: 4, rank: null, line: 9, text: 'nan' } as const;
  const message = taskMessageToWire({ kind: 'trainingSign', task, sign });
  expect(message.trainingSign).toMatchObject({
    task: wireTask,
    sign: { kind: 'nan_loss', step: 5, line: 9 },
  });
});
