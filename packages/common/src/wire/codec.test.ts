import { expect, test } from 'vitest';
import type { TaskFailure } from '../gangs.ts';
import type { JobId } from '../ids.ts';
import { attemptStates, jobStates, taskStates } from '../states.ts';
import type { EventView, JobView, LogPiece, TaskEnd, TaskReport } from '../views.ts';
import {
  eventFromWire,
  eventToWire,
  jobFromWire,
  jobStateWire,
  jobToWire,
  logPieceFromWire,
  logPieceToWire,
  taskReportFromWire,
  taskReportToWire,
} from './codec.ts';
import { agentHubService, musterService } from './service.ts';
import { taskRefFromWire } from './taskRef.ts';
import { sent } from './wireFixture.ts';

const cause = { kind: 'exit_code', message: 'rank 0 on node-1 exited', nodeRank: 0, node: 'node-1' } as const;
const end: TaskEnd = {
  exitCode: 0,
  signal: 'SIGKILL',
  oomKilled: true,
  finishedAtMs: 1_700_000_000_123,
  statusLost: true,
  startError: { ...cause, nodeRank: null, node: null },
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
  failure: { source: 'error_file', consequence: true, rank: 0, message: 'ValueError: x', atBoottimeMs: 5 },
};
const noEnd: TaskEnd = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: false,
  startError: null,
  logBytes: 0,
  gpuUsage: null,
  failure: null,
};
const bareTask = { gpuUuids: [], exit: null, frozen: false, doing: null, address: null } as const;
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
    },
    { ...bareTask, nodeRank: 1, node: 'node-2', state: 'ended', exit: noEnd },
    { ...bareTask, nodeRank: 2, node: 'node-3', state: 'assigned' },
  ],
  cause,
  allocatedAtMs: 1,
  runningAtMs: 2,
  endedAtMs: 3,
  masterAddr: '10.0.0.1',
  masterPort: 29_500,
  gpuUsage: end.gpuUsage,
} as const;
const fullJob: JobView = {
  id: 'job_1',
  name: 'train',
  project: 'default',
  state: 'queued',
  spec: { name: 'train', env: { A: '1' } },
  submittedAtMs: 1_700_000_000_000,
  endedAtMs: 1_700_000_000_001,
  pending: { kind: 'reserved', message: 'kept', remedy: 'wait' },
  cause,
  attempts: [attempt],
  array: { id: 'arr_1', index: 0, size: 8 },
  requeuedFrom: 'job_0',
  submitSeq: 2 ** 40,
  leftOut: [{ node: 'node-3', cause: { ...cause, kind: 'image_pull' } }],
};
const bareJob: JobView = {
  ...fullJob,
  endedAtMs: null,
  pending: null,
  cause: null,
  attempts: [
    {
      ...{ ...attempt, cause: null, runningAtMs: null, endedAtMs: null },
      ...{ masterAddr: null, masterPort: null, gpuUsage: null },
    },
  ],
  array: null,
  requeuedFrom: null,
  leftOut: [],
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

test('what nobody knows of a failure stays unknown: not rank 0', () => {
  const failure: TaskFailure = {
    ...{ source: 'log', consequence: false, rank: null, message: 'm', atBoottimeMs: 2 ** 40 },
  };
  const tasks = [
    { ...bareTask, nodeRank: 0, node: 'node-1', state: 'ended', exit: { ...noEnd, failure } },
  ] as const;
  const job = { ...bareJob, attempts: [{ ...attempt, tasks }] };
  expect(jobFromWire(sent(musterService.GetJob, jobToWire(job)))).toEqual(job);
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
  ...{ task, state: 'ended', exit: end, startedAtMs: 1, runningForMs: 2 },
  ...{ frozen: true, doing: 'testing the paths to its peers' },
};

function reported(value: TaskReport): TaskReport | null {
  const { requestSerialize, requestDeserialize } = agentHubService.Session;
  const { report: wire } = requestDeserialize(requestSerialize({ report: taskReportToWire(value) }));
  return wire == null ? null : taskReportFromWire(wire);
}

test('a report is the same on the other side, in every state', () => {
  expect(reported(report)).toEqual(report);
  for (const state of taskStates) {
    const bare: TaskReport = {
      ...{ task, state, exit: null, startedAtMs: null, runningForMs: null },
      ...{ frozen: false, doing: null },
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
