/** A job as the API shows it while it trains, for tests. */
import { causeOf } from '@muster/common/cause';
import type { TrainingProgress } from '@muster/common/training';
import type { AttemptView, JobView } from '@muster/common/views';
import { aCheckpoint, jobIdOf, someMs } from '../modelFixture.ts';

export const minuteMs = 60_000;
/** An hour after its newest attempt began to run. */
export const nowMs = someMs + 60 * minuteMs;

export function someProgress(fields: Partial<TrainingProgress> = {}): TrainingProgress {
  return {
    framework: 'nanogpt',
    latest: {
      step: 500,
      train_loss: 2.345678901,
      eval_loss: 2.5,
      learning_rate: 3e-4,
      samples_per_second: 1_024,
    },
    totalSteps: 1_000,
    etaMs: 125 * minuteMs,
    rows: 500,
    atMs: nowMs - 5_000,
    ...fields,
  };
}

export function anAttemptView(number: number, fields: Partial<AttemptView> = {}): AttemptView {
  return {
    number,
    state: 'ended',
    tasks: [],
    cause: causeOf('cuda_oom', 'CUDA out of memory'),
    allocatedAtMs: someMs - 30 * minuteMs,
    runningAtMs: someMs - 20 * minuteMs,
    endedAtMs: someMs - 5 * minuteMs,
    masterAddr: null,
    masterPort: null,
    gpuUsage: null,
    resume: null,
    leaseMs: null,
    signs: [],
    hungAtMs: null,
    firstStepAtMs: null,
    hangs: false,
    ...fields,
  };
}

/** It runs for the second time, and saved five minutes ago. */
export function aJobView(fields: Partial<JobView> = {}): JobView {
  const running = { state: 'running', cause: null, runningAtMs: someMs, endedAtMs: null } as const;
  return {
    id: jobIdOf(1),
    name: 'train',
    project: 'default',
    traceId: '0af7651916cd43dd8448eb211c80319c',
    state: 'running',
    spec: { name: 'train' },
    submittedAtMs: someMs,
    endedAtMs: null,
    pending: null,
    cause: null,
    attempts: [
      anAttemptView(1),
      anAttemptView(2, { ...running, resume: { name: 'checkpoint-250', step: 250 } }),
    ],
    array: null,
    requeuedFrom: null,
    resumedFrom: null,
    user: 'admin',
    submitSeq: 1,
    excludedNodes: [],
    checkpoints: [aCheckpoint(500, { bytes: 2_345_678_901, savedAtMs: nowMs - 5 * minuteMs })],
    training: someProgress(),
    phases: null,
    ledger: [
      { kind: 'productive', cause: null, gpuSeconds: 36_000 },
      { kind: 'failure', cause: 'cuda_oom', gpuSeconds: 4_500 },
      { kind: 'hang', cause: null, gpuSeconds: 0 },
    ],
    preemptions: 0,
    batchScale: 1,
    lrScale: 1,
    extraRuntimeMs: 0,
    failures: 0,
    costUsd: null,
    outputAtMs: null,
    ...fields,
  };
}
