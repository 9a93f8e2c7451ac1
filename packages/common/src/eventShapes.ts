/**
 * What the data of events are made of: JSON Schema of each member, with an example. `docs/events.md` and `docs/events.schema.json` are
 * generated from it, and tests compare it with the events that they see. Plain data.
 */

import { alertKinds, alertSeverities } from './alerts.ts';
import type { CheckpointVerdict } from './checkpoints.ts';
import { conditionActions, conditionSeverities } from './conditions.ts';
import { preflightBackends } from './gangs.ts';
import {
  type EventShape,
  flag,
  listShape,
  type Members,
  mapOf,
  nullable,
  objectOf,
  oneOf,
  real,
  textShape,
  whole,
} from './jsonShapes.ts';
import { roles } from './people.ts';
import { taskStates, terminalJobStates } from './states.ts';
import { gpuStillnesses } from './training.ts';

const nothing: EventShape = { type: 'null', example: null };

// ---- What several kinds have

export const timeMs = whole(1_767_323_045_000);
export const node = textShape('gpu-1');
export const user = textShape('ann');
export const project = textShape('vision');
export const caller = textShape('user:ann:5c1e90d2b7aa4f03');
export const attemptNumber = whole(1);
export const agentToken = textShape('agent:gpu-1:c305297d79808a89');
export const jobId = textShape('job_4n2k8qwz1y7m');
const gpuUuid = textShape('GPU-8f2c1a6e-5d0b-4f7c-9a3e-1b2c3d4e5f60');
const nodeRank = whole(0);
const bytesPerS = real(1_250_000_000);

export const cause = objectOf({
  kind: textShape('cuda_oom'),
  message: textShape('rank 0 on gpu-1 exited with code 1: it failed with cuda_oom'),
  nodeRank: nullable(nodeRank),
  node: nullable(node),
  evidence: nullable(
    objectOf({ line: nullable(whole(812)), text: textShape('CUDA out of memory'), rank: nullable(whole(0)) }),
  ),
  blame: textShape('job'),
});

/** Of its GPUs together. */
const gpuUsage = nullable(
  objectOf({
    gpus: whole(8),
    observedGpuSeconds: real(57_600),
    utilizationMean: nullable(real(91.5)),
    utilizationPeak: nullable(real(100)),
    memoryPeakMb: nullable(real(74_210)),
    energyKwh: nullable(real(9.8)),
    idleGpuSeconds: nullable(real(120)),
    smActiveMean: nullable(real(0.83)),
    tensorActiveMean: nullable(real(0.41)),
  }),
  null,
);

const exit = objectOf({
  exitCode: nullable(whole(1)),
  signal: nullable(textShape('SIGKILL'), null),
  oomKilled: flag(false),
  finishedAtMs: nullable(real(1_767_323_045_000)),
  statusLost: flag(false),
  startError: nullable(cause, null),
  logBytes: whole(48_120),
  gpuUsage,
  failure: nullable(
    objectOf({
      source: textShape('output'),
      consequence: flag(false),
      rank: nullable(whole(0)),
      message: textShape('CUDA out of memory'),
      kind: nullable(textShape('cuda_oom')),
      blame: nullable(textShape('job')),
      line: nullable(whole(812)),
      atBoottimeMs: real(8_640_000),
    }),
  ),
  training: nullable(
    objectOf({
      framework: nullable(textShape('hf_trainer')),
      latest: mapOf(real(1), { step: 1_200, train_loss: 2.31 }),
      totalSteps: nullable(whole(20_000)),
      etaMs: nullable(real(3_600_000)),
      rows: whole(1_200),
      atMs: timeMs,
    }),
    null,
  ),
  artifacts: listShape(
    objectOf({ name: textShape('model'), bytes: whole(1_402_331_812), digest: textShape('sha256:4f1c0d…') }),
  ),
});

const gpu = objectOf({
  uuid: gpuUuid,
  model: textShape('NVIDIA H100 80GB HBM3'),
  memoryMb: nullable(whole(81_559)),
  simulated: flag(false),
});

/** @param problem an example. null: those of the kind have none */
const checkpointOf = (problem: string | null) => ({
  attempt: attemptNumber,
  checkpoint: textShape('checkpoint-1200'),
  step: nullable(whole(1_200)),
  node,
  problem: problem === null ? nothing : nullable(textShape(problem)),
});
export const suspectData = checkpointOf('two attempts that resumed from it failed in the same way');
export const checkpointData = (verdict: CheckpointVerdict, problem: string | null) => ({
  ...checkpointOf(problem),
  verdict: oneOf([verdict]),
  'bytes?': nullable(whole(2_147_483_648)),
  'saveDurationMs?': nullable(real(4_200)),
  'metrics?': mapOf(real(1), { eval_loss: 2.28 }),
  'diverged?': flag(true),
});

/** @param line an example of the line that shows it */
export const signData = (line: string) => ({
  attempt: attemptNumber,
  nodeRank,
  node,
  rank: nullable(whole(0)),
  step: nullable(whole(1_201)),
  lastGoodStep: nullable(whole(1_200)),
  line: whole(1_874),
  text: textShape(line),
});

export const taskData = { attempt: attemptNumber, nodeRank, node } as const satisfies Members;
export const taskEndData = { ...taskData, exit } as const satisfies Members;
export const hungData = {
  ...taskData,
  rank: nullable(whole(0)),
  quietForMs: real(600_000),
  usualMs: real(1_200),
  gpus: oneOf(gpuStillnesses),
} as const satisfies Members;

const placement = { node, gpuUuids: listShape(gpuUuid) };
export const resume = objectOf({ name: textShape('checkpoint-1200'), step: nullable(whole(1_200)) });
export const allocatedData = {
  attempt: attemptNumber,
  tasks: listShape(objectOf(placement)),
  resume: nullable(resume),
} as const satisfies Members;
export const resumedFrom = objectOf({ jobId: nullable(jobId), ...resume.properties });

export const checkedData = {
  attempt: attemptNumber,
  round: whole(1),
  addresses: listShape(textShape('10.0.0.1'), ['10.0.0.1', '10.0.0.2']),
  paths: listShape(
    objectOf({
      from: node,
      to: textShape('gpu-2'),
      address: textShape('10.0.0.2'),
      error: nullable(textShape('refused'), null),
      roundTripUs: nullable(real(85)),
    }),
  ),
} as const satisfies Members;
export const measuredData = {
  attempt: attemptNumber,
  backend: oneOf(preflightBackends),
  pairs: listShape(objectOf({ from: node, to: textShape('gpu-2'), bytesPerS })),
  allReduceBytesPerS: nullable(bytesPerS),
} as const satisfies Members;

/** A task as it ended. What else it has may change. */
const endedTask = objectOf({
  nodeRank,
  ...placement,
  state: oneOf(taskStates, 'ended'),
  exit: nullable(exit),
  failedAtMs: nullable(timeMs),
});
export const attemptEndData = {
  attempt: attemptNumber,
  cause: nullable(cause),
  tasks: listShape(endedTask),
  gpuUsage,
  endedAtMs: timeMs,
} as const satisfies Members;

export const queuedData = {
  cause: nullable(cause),
  backoffMs: whole(10_000),
  batchScale: real(0.5),
  lrScale: real(1),
} as const satisfies Members;

export const statsData = {
  attempt: attemptNumber,
  text: textShape('[GPU Stats] Memory: 45.2/80GB | Util: 92% | Samples/sec: 1024'),
  memoryUsedMb: nullable(real(46_285)),
  memoryTotalMb: nullable(real(81_559)),
  utilization: nullable(real(92)),
  samplesPerSecond: nullable(real(1_024)),
} as const satisfies Members;

/** What it has besides is shown by `muster node -o json`. */
export const inventory = objectOf({
  gpus: listShape(gpu),
  cpus: whole(128),
  memoryMb: whole(1_031_000),
  addresses: listShape(textShape('10.0.0.1')),
  labels: mapOf(textShape('a'), { rack: 'a' }),
  drivers: listShape(textShape('process'), ['process', 'docker']),
});
export const changedData = {
  changes: listShape(textShape('GPU GPU-8f2c1a6e is gone')),
  gpus: listShape(gpu),
} as const satisfies Members;

const taskRef = objectOf({ jobId, attempt: attemptNumber, nodeRank });
export const taskRefs = listShape(taskRef);

export const conditionData = {
  kind: textShape('gpu_xid'),
  gpuUuid: nullable(gpuUuid),
  severity: oneOf(conditionSeverities, 'critical'),
  action: oneOf(conditionActions, 'drain_gpu'),
  message: textShape('GPU 3 has reported Xid 79: it has fallen off the bus'),
  evidence: textShape('NVRM: Xid (PCI:0000:86:00): 79'),
  task: nullable(taskRef),
} as const satisfies Members;

export const partitionData = {
  silentNodes: whole(3),
  nodes: whole(4),
  names: listShape(node, ['gpu-1', 'gpu-2', 'gpu-3']),
} as const satisfies Members;

export const restoreData = {
  takenAtMs: nullable(timeMs),
  atMs: timeMs,
  lostEvents: nullable(whole(40)),
  lostJobs: nullable(whole(3)),
  attemptsFrom: whole(1_007),
} as const satisfies Members;
export const advancedData = {
  term: whole(2),
  by: textShape('admin'),
  attempts: mapOf(attemptNumber, { job_4n2k8qwz1y7m: 5 }),
  nodes: listShape(node),
  strays: whole(1),
} as const satisfies Members;

const alertName = { alert: textShape('job-failed'), owner: nullable(user) };
const firing = { episode: textShape('job-failed-1041'), of: textShape('job_4n2k8qwz1y7m') };
export const alertRefData = alertName satisfies Members;
export const ruleData = {
  ...alertName,
  severity: oneOf(alertSeverities, 'critical'),
  condition: textShape("workload_state == 'failed'"),
  scope: objectOf({
    kind: oneOf(alertKinds, 'job'),
    jobId: nullable(jobId, null),
    labels: mapOf(textShape('a'), { team: 'vision' }),
    project: nullable(project),
    nodes: listShape(node, []),
  }),
} as const satisfies Members;
export const alertData = {
  ...alertName,
  ...firing,
  kind: oneOf(alertKinds, 'job'),
  name: textShape('train'),
  project: nullable(project),
  severity: oneOf(alertSeverities, 'critical'),
  message: textShape('train (job_4n2k8qwz1y7m) has failed: cuda_oom'),
  labels: mapOf(textShape('a'), { team: 'vision' }),
  firedAtMs: timeMs,
  silenced: flag(false),
} as const satisfies Members;
export const acknowledgedData = { ...alertName, ...firing, by: user } as const satisfies Members;
export const silencedData = {
  ...alertName,
  untilMs: timeMs,
  by: user,
  reason: textShape('known, until Monday'),
} as const satisfies Members;

export const userData = {
  user,
  role: oneOf(roles, 'user'),
  projects: listShape(project),
} as const satisfies Members;

export const submittedData = {
  project: textShape('vision'),
  'arrayId?': textShape('arr_k9e2j5m8ang3'),
  'arrayIndex?': whole(0),
  'requeuedFrom?': textShape('job_2ngtz4wz7kqy'),
  'resumedFrom?': resumedFrom,
} as const satisfies Members;

export const preemptedData = {
  attempt: attemptNumber,
  by: nullable(textShape('job_1r3vzp4rp4ng')),
  message: textShape(
    'preempted by job_1r3vzp4rp4ng (priority 100 over 50); 120 GPU-seconds since checkpoint-1200',
  ),
} as const satisfies Members;

export const releasedData = {
  attempt: attemptNumber,
  masterAddr: textShape('10.0.0.1'),
  masterPort: whole(29_500),
  'addresses?': listShape(textShape('10.0.0.1'), ['10.0.0.1', '10.0.0.2']),
} as const satisfies Members;

export const joinedData = {
  id: agentToken,
  node,
  token: textShape('join:104b4c46e36e65da'),
  'replaced?': textShape('agent:gpu-1:b8db67df874a6e88'),
} as const satisfies Members;

export const issuedData = {
  id: caller,
  user,
  label: textShape('laptop'),
  by: oneOf(['login', 'id_token', 'create', 'rotate']),
  'replaced?': textShape('user:ann:17c756a3f289f206'),
} as const satisfies Members;

export const stoppingData = {
  attempt: attemptNumber,
  next: oneOf(['queued', ...terminalJobStates]),
  cause: nullable(cause),
} as const satisfies Members;

export const truncatedData = {
  job: textShape('job_4n2k8qwz1y7m'),
  attempt: attemptNumber,
  nodeRank: whole(0),
  reason: textShape('size'),
} as const satisfies Members;

export const removedLogData = {
  job: textShape('job_4n2k8qwz1y7m'),
  bytes: whole(48_120),
  reason: textShape('removed'),
} as const satisfies Members;

export const sweepData = {
  sweep: textShape('swp_k9e2j5m8ang3'),
  name: textShape('lr-and-batch'),
  user,
  project,
} as const satisfies Members;

export const pipelineData = {
  pipeline: textShape('pln_k9e2j5m8ang3'),
  name: textShape('vision'),
  user,
  project,
} as const satisfies Members;

export const trialEndData = {
  ...sweepData,
  trial: whole(7),
  jobId: nullable(jobId),
  state: textShape('complete'),
  value: nullable(real(2.31)),
  step: nullable(whole(20_000)),
  cause: nullable(textShape('cuda_oom'), null),
  lost: nullable(textShape('metrics of attempt 1 are lost: node-2 no longer has them'), null),
} as const satisfies Members;

export const jobOfTrial = { ...sweepData, trial: whole(7), jobId } as const satisfies Members;

export const sweepEndData = {
  ...sweepData,
  state: textShape('done'),
  reason: nullable(textShape('stopped by a user'), null),
  best: nullable(whole(7)),
  value: nullable(real(2.31)),
} as const satisfies Members;
