/** Messages of jobs, their tasks and their events ↔ words of the domain. */
import { blames, causeKinds, type Evidence } from '../spec/causes.ts';
import { attemptStates, jobStates, taskStates } from '../states.ts';
import {
  type AttemptView,
  type Cause,
  type ClusterView,
  type EventView,
  type ExcludedNode,
  type JobView,
  type LogPiece,
  type MissingOutput,
  type PendingReason,
  pendingKinds,
  type TaskEnd,
  type TaskReport,
  type TaskView,
} from '../views.ts';
import { taskFailure } from './gangCodec.ts';
import { enumMapping, json, message, needed, skip, sparse, word } from './mapping.ts';
import { taskRef } from './taskRef.ts';
import { gpuUsage } from './telemetryCodec.ts';
import {
  attemptSign,
  checkpointWire,
  hang,
  ledgerEntry,
  progress,
  resume,
  resumedFrom,
} from './trainingCodec.ts';

export const jobStateWire = enumMapping('JOB_STATE_', jobStates, 'queued');
const taskState = enumMapping('TASK_STATE_', taskStates, 'assigned');

const cause = message<Cause>()('Cause', {
  kind: word(causeKinds, 'unknown'),
  evidence: message<Evidence>()('Evidence'),
  blame: word(blames, 'unknown'),
});
const taskEnd = message<TaskEnd>()('TaskExit', {
  startError: cause,
  gpuUsage,
  failure: taskFailure,
  training: progress,
});
export const { toWire: taskReportToWire, fromWire: taskReportFromWire } = message<TaskReport>()(
  'TaskReport',
  {
    task: needed(taskRef),
    state: taskState,
    exit: taskEnd,
    training: progress,
    hang,
    gpuUuids: skip,
    jobName: skip,
  },
);

const attempt = message<AttemptView>()('Attempt', {
  state: enumMapping('ATTEMPT_STATE_', attemptStates, 'allocated'),
  tasks: message<TaskView>()('Task', { state: taskState, exit: taskEnd }),
  cause,
  gpuUsage,
  resume,
  signs: attemptSign,
});
const pending = message<PendingReason>()('PendingReason', {
  kind: word(pendingKinds, 'scheduling'),
  waitMs: sparse(),
});
export const { toWire: pendingToWire, fromWire: pendingFromWire } = pending;

export const { toWire: jobToWire, fromWire: jobFromWire } = message<JobView>()('Job', {
  state: jobStateWire,
  spec: json,
  pending,
  cause,
  attempts: attempt,
  excludedNodes: message<ExcludedNode>()('ExcludedNode', { cause: needed(cause) }),
  checkpoints: checkpointWire,
  training: progress,
  ledger: ledgerEntry,
  resumedFrom,
});

export const { toWire: eventToWire, fromWire: eventFromWire } = message<EventView>()('Event', {
  cloudEvent: json,
});

export const { toWire: logPieceToWire, fromWire: logPieceFromWire } = message<LogPiece>()('LogPiece', {
  missing: message<MissingOutput>()('MissingOutput'),
});

export const { fromWire: clusterFromWire } = message<ClusterView>()('Cluster');
