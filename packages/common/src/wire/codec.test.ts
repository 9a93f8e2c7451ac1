import { expect, test } from 'vitest';
import { nothingRan } from '../cause.ts';
import type { TaskFailure } from '../gangs.ts';
import type { JobId } from '../ids.ts';
import { attemptStates, jobStates, taskStates } from '../states.ts';
import type { TrainingProgress } from '../training.ts';
import type { EventView, JobView, LogPiece, TaskEnd, TaskReport } from '../views.ts';
import {
  eventFromWire,
  eventToWire,
  jobFromWire,
  jobStateWire,
  jobToWire,
  logPieceFromWire,
  logPieceToWire,
  taskRefFromWire,
  taskReportFromWire,
  taskReportToWire,
} from './codec.ts';
import { agentHubService, musterService } from './service.ts';
import { sent } from './wireFixture.ts';

const cause = {
  kind: 'exit_code',
  message: 'rank 0 on node-1 exited',
  nodeRank: 0,
  node: 'node-1',
  evidence: { line: 2 ** 40, text: 'Segmentation fault', rank: 0 },
  blame: 'gpu',
} as const;
const training: TrainingProgress = {
  framework: 'nanogpt',
  latest: { train_loss: 0, step: 500, learning_rate: 3e-4 },
  notFinite: ['eval_loss'],
  totalSteps: 1_000,
  etaMs: 0,
  rows: 500,
  atMs: 1_700_000_000_122,
};
const noTraining: TrainingProgress = {
  framework: null,
  latest: {},
  notFinite: [],
  totalSteps: null,
  etaMs: null,
  rows: 0,
  atMs: 1,
};
const end: TaskEnd = {
  exitCode: 0,
  signal: 'SIGKILL',
  oomKilled: true,
  finishedAtMs: 1_700_000_000_123,
  statusLost: true,
  startError: { ...cause, nodeRank: null, node: null, evidence: null, blame: 'unknown' },
  logBytes: 2 ** 40,
  gpuUsage: {
    gpus: 2,
    observedGpuSeconds: 0.5,
    utilizationMean: 0,
    utilizationPeak: 100,
    memoryPeakMb: 81_559,
    energyKwh: 0.25,
    idleGpuSeconds: null,
    smActiveMean: null,
    tensorActiveMean: 0.125,
  },
  failure: {
    source: 'error_file',
    consequence: true,
    rank: 0,
    message: 'ValueError: x',
    atBoottimeMs: 5,
    kind: 'python_exception',
    blame: 'job',
    line: 7,
  },
  training,
  artifacts: [{ name: 'model', bytes: 2 ** 40, digest: `sha256:${'a'.repeat(64)}` }],
};
const bareTask = {
  gpuUuids: [],
  exit: null,
  frozen: false,
  doing: null,
  address: null,
  gpuIndexes: [],
} as const;
const attempt = {
  number: 3,
  state: 'ended',
  tasks: [
    {
      nodeRank: 0,
      node: 'node-1',
      gpuUuids: ['GPU-a', 'GPU-b'],
      state: 'ended',
      exit: end,
      frozen: true,
      doing: 'pulling the image',
      address: '10.1.0.7',
      gpuIndexes: [0, 7],
    },
    { ...bareTask, nodeRank: 1, node: 'node-2', state: 'ended', exit: nothingRan },
    { ...bareTask, nodeRank: 2, node: 'node-3', state: 'assigned' },
  ],
  cause,
  allocatedAtMs: 1,
  runningAtMs: 2,
  endedAtMs: 3,
  masterAddr: '10.0.0.1',
  masterPort: 29_500,
  gpuUsage: end.gpuUsage,
  resume: { name: 'checkpoint-500', step: 500 },
  leaseMs: 60_000,
  signs: [
    { kind: 'nan_loss', step: 0, lastGoodStep: null },
    { kind: 'loss_spike', step: null, lastGoodStep: 70 },
  ],
  hungAtMs: 4,
  firstStepAtMs: 4,
  hangs: true,
} as const;
const fullJob: JobView = {
  id: 'job_1',
  name: 'train',
  project: 'default',
  traceId: '0af7651916cd43dd8448eb211c80319c',
  user: 'admin',
  state: 'queued',
  spec: { name: 'train', env: { A: '1' } },
  submittedAtMs: 1_700_000_000_000,
  endedAtMs: 1_700_000_000_001,
  pending: { kind: 'backoff', message: 'kept', remedy: 'wait', waitMs: 1_500 },
  cause,
  attempts: [attempt],
  array: { id: 'arr_1', index: 0, size: 8 },
  requeuedFrom: 'job_0',
  resumedFrom: { jobId: 'job_0', name: 'checkpoint-500', step: 500 },
  submitSeq: 2 ** 40,
  excludedNodes: [{ node: 'node-3', cause: { ...cause, kind: 'image_pull' } }],
  checkpoints: [
    {
      name: 'checkpoint-500',
      version: 'v1',
      step: 0,
      format: 'huggingface',
      bytes: 2 ** 40,
      files: 12,

      savedAtMs: 1_700_000_000_000,
      saveDurationMs: 0,
      metrics: { eval_loss: 0.5 },
      digest: 'sha256:ab',
      verdict: 'corrupt',
      depth: 'deep',
      problem: 'model.safetensors is cut off',
      attempt: 3,
      node: 'node-1',
      shared: true,
      suspect: true,
      reread: true,
    },
    {
      name: 'last.bin',
      version: 'v2',
      step: null,
      format: 'unknown',
      bytes: 1,
      files: 1,
      savedAtMs: 2,

      saveDurationMs: null,
      metrics: {},
      digest: null,
      verdict: 'unverified',
      depth: null,
      problem: null,
      attempt: 1,
      node: 'node-1',
      shared: false,
      suspect: false,
      reread: false,
    },
  ],
  training,
  phases: {
    unit: 'steps',
    index: 1,
    done: 1_200,
    total: 1_500,
    percent: 80,
    phases: [
      {
        name: 'broad',
        state: 'ended',
        start: 0,
        target: 1_000,
        extensions: 1,
        step: 1_000,
        tokens: 98_304_000,
        verdict: 'met',
        values: { eval_loss: 2.5 },
        checkpoint: { name: 'checkpoint-1000', step: 1_000 },
        endedAtMs: 1_700_000_000_000,
      },
      {
        name: 'cooldown',
        state: 'current',
        start: 1_000,
        target: 500,
        extensions: 0,
        step: null,
        tokens: null,
        verdict: null,
        values: {},
        checkpoint: null,
        endedAtMs: null,
      },
    ],
  },
  ledger: [
    { kind: 'productive', cause: null, gpuSeconds: 0.5 },
    { kind: 'failure', cause: 'cuda_oom', gpuSeconds: 2 ** 40 },
  ],
  preemptions: 3,
  batchScale: 0.25,
  lrScale: 0.1,
  extraRuntimeMs: 3_600_000,
  failures: 2,
  costUsd: 12.5,
  outputAtMs: 1_700_000_000_002,
};
const bareJob: JobView = {
  ...fullJob,
  endedAtMs: null,
  pending: null,
  cause: null,
  attempts: [
    {
      ...attempt,
      cause: null,
      runningAtMs: null,
      endedAtMs: null,
      masterAddr: null,
      masterPort: null,
      gpuUsage: null,
      resume: { name: 'last.bin', step: null },
    },
    { ...attempt, number: 4, resume: null, leaseMs: null },
  ],
  array: null,
  requeuedFrom: null,
  resumedFrom: null,
  excludedNodes: [],
  checkpoints: [],
  training: noTraining,
  phases: null,
  ledger: [],
  preemptions: 0,
  batchScale: 1,
  lrScale: 1,
  extraRuntimeMs: 0,
  failures: 2,
  costUsd: 12.5,
  outputAtMs: 1_700_000_000_002,
};

test.each([
  ['everything', fullJob],
  ['nothing that may be absent', bareJob],
])('a job with %s is the same on the other side', (_, job) => {
  expect(jobFromWire(sent(musterService.GetJob, jobToWire(job)))).toEqual(job);
});

test('every state has its own name on the wire', () => {
  for (const state of jobStates) {
    const { state: read } = jobFromWire(sent(musterService.GetJob, jobToWire({ ...bareJob, state })));
    expect(read).toBe(state);
  }
  for (const state of attemptStates) {
    const job = { ...bareJob, attempts: [{ ...attempt, state }] };
    expect(jobFromWire(sent(musterService.GetJob, jobToWire(job))).attempts[0]?.state).toBe(state);
  }
});

test('a value that a newer peer sends becomes what claims least', () => {
  expect(jobStateWire.fromWire('JOB_STATE_TELEPORTED')).toBe('queued');
  const wire = jobToWire({ ...fullJob, cause: { ...cause, kind: 'unknown' } });
  const newer = {
    ...wire,
    cause: { kind: 'gremlins', message: 'm' },
    pending: { kind: 'mood', message: 'm' },
  };
  const read = jobFromWire(sent(musterService.GetJob, newer));
  expect([read.cause?.kind, read.pending?.kind]).toEqual(['unknown', 'scheduling']);
});

test('what is not known of a failure stays unknown: not rank 0', () => {
  const failure: TaskFailure = {
    source: 'log',
    consequence: false,
    rank: null,
    message: 'm',
    atBoottimeMs: 2 ** 40,
    kind: null,
    blame: null,
    line: null,
  };
  const tasks = [
    { ...bareTask, nodeRank: 0, node: 'node-1', state: 'ended', exit: { ...nothingRan, failure } },
  ] as const;
  const job = { ...bareJob, attempts: [{ ...attempt, tasks }] };
  expect(jobFromWire(sent(musterService.GetJob, jobToWire(job)))).toEqual(job);
});

test('evidence may be of no line and no rank, and who is to blame unknown', () => {
  const bare = { ...cause, evidence: { line: null, text: 'Xid 79', rank: null }, blame: 'unknown' } as const;
  const job: JobView = { ...bareJob, cause: bare };
  expect(jobFromWire(sent(musterService.GetJob, jobToWire(job)))).toEqual(job);
  const newer = { ...jobToWire(job), cause: { kind: 'exit_code', message: 'm', blame: 'the_stars' } };
  expect(jobFromWire(sent(musterService.GetJob, newer)).cause?.blame).toBe('unknown');
});

test('an event is the same on the other side', () => {
  const event: EventView = {
    seq: 2 ** 40,
    id: 'c-1',
    kind: 'job.submitted',
    subject: 'job_1',
    subjectSeq: 1,
    timeMs: 3,
    cloudEvent: { data: { nested: [1, null] } },
  };
  expect(eventFromWire(sent(musterService.WatchEvents, eventToWire(event)))).toEqual(event);
});

test.each([
  null,
  { node: 'node-2', bytes: 2 ** 40, silentForMs: 3 },
  { node: 'node-2', bytes: 1, silentForMs: null },
])('a piece of output is the same on the other side (missing: %o)', (missing) => {
  const piece: LogPiece = {
    attempt: 2,
    nodeRank: 1,
    offset: 2 ** 40,
    data: Buffer.from([0, 255]),
    complete: false,
    missing,
  };
  expect(logPieceFromWire(sent(musterService.ReadLogs, logPieceToWire(piece)))).toEqual(piece);
});

const task = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
const report: TaskReport = {
  task,
  state: 'ended',
  exit: end,
  startedAtMs: 1,
  runningForMs: 2,
  startedBoottimeMs: 3,
  endedBoottimeMs: 4,
  frozen: true,
  doing: 'testing the paths to its peers',
  trainingComplete: true,
  training,
  hang: { quietForMs: 600_000, usualMs: 1, gpus: 'pinned', rank: 0 },
};

function reported(value: TaskReport): TaskReport | null {
  const { requestSerialize, requestDeserialize } = agentHubService.Session;
  const { report: wire } = requestDeserialize(requestSerialize({ report: taskReportToWire(value) }));
  return wire == null ? null : taskReportFromWire(wire);
}

test('a report is the same on the other side, in every state', () => {
  expect(reported(report)).toEqual(report);
  for (const state of taskStates) {
    const notRun = { startedAtMs: null, runningForMs: null, startedBoottimeMs: null, endedBoottimeMs: null };
    const bare: TaskReport = {
      task,
      state,
      exit: null,
      ...notRun,
      frozen: false,
      doing: null,
      trainingComplete: false,
      training: null,
      hang: null,
    };
    expect(reported(bare)).toEqual(bare);
  }
});

test('a reference to no task is ignored', () => {
  expect(taskRefFromWire(null)).toBeNull();
  expect(taskRefFromWire({ ...task, jobId: '../../etc' })).toBeNull();
  expect(taskRefFromWire({ ...task, attempt: 0 })).toBeNull();
  expect(taskRefFromWire(task)).toEqual(task);
});
