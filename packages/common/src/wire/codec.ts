/**
 * Wire messages ↔ domain words. The wire stops here: enum names become string unions, zero and empty become null where
 * they mean "absent", and values a newer peer may send are tolerated on reading.
 */
import type { Attempt, Attempt__Output } from '../gen/muster/v1/Attempt.ts';
import type { Cause__Output, Cause as WireCause } from '../gen/muster/v1/Cause.ts';
import type { Cluster__Output } from '../gen/muster/v1/Cluster.ts';
import type { Event__Output, Event as WireEvent } from '../gen/muster/v1/Event.ts';
import type { Evidence as WireEvidence } from '../gen/muster/v1/Evidence.ts';
import type { Job, Job__Output } from '../gen/muster/v1/Job.ts';
import type { LogPiece__Output, LogPiece as WireLogPiece } from '../gen/muster/v1/LogPiece.ts';
import type { PendingReason__Output, PendingReason as WirePending } from '../gen/muster/v1/PendingReason.ts';
import type { TaskExit__Output, TaskExit as WireTaskExit } from '../gen/muster/v1/TaskExit.ts';
import type { TaskReport__Output, TaskReport as WireTaskReport } from '../gen/muster/v1/TaskReport.ts';
import { blames, causeKinds, type Evidence } from '../spec/causes.ts';
import { attemptStates, jobStates, taskStates } from '../states.ts';
import {
  type AttemptView,
  type Cause,
  type ClusterView,
  type EventView,
  type JobView,
  type LogPiece,
  type PendingReason,
  pendingKinds,
  type TaskEnd,
  type TaskReport,
} from '../views.ts';
import { enumMapping, known } from './enums.ts';
import {
  excludedNodeFromWire,
  excludedNodeToWire,
  taskFailureFromWire,
  taskFailureToWire,
} from './gangCodec.ts';
import { taskRefFromWire, taskRefToWire } from './taskRef.ts';
import { gpuUsageFromWire, gpuUsageToWire } from './telemetryCodec.ts';
import {
  attemptSignFromWire,
  attemptSignToWire,
  checkpointFromWire,
  checkpointToWire,
  hangFromWire,
  hangToWire,
  ledgerFromWire,
  ledgerToWire,
  progressFromWire,
  progressToWire,
  resumedFromFromWire,
  resumedFromToWire,
  resumeFromWire,
  resumeToWire,
} from './trainingCodec.ts';

export const jobStateWire = enumMapping('JOB_STATE_', jobStates, 'queued');
const attemptStateWire = enumMapping('ATTEMPT_STATE_', attemptStates, 'allocated');
const taskStateWire = enumMapping('TASK_STATE_', taskStates, 'assigned');

export function causeToWire(cause: Cause): WireCause {
  return {
    kind: cause.kind,
    message: cause.message,
    node: cause.node ?? '',
    ...(cause.nodeRank === null ? {} : { nodeRank: cause.nodeRank }),
    evidence: cause.evidence === null ? null : evidenceToWire(cause.evidence),
    blame: cause.blame,
  };
}

function evidenceToWire({ line, text, rank }: Evidence): WireEvidence {
  return { line: line ?? 0, text, ...(rank === null ? {} : { rank }) };
}

export function causeFromWire(wire: Cause__Output): Cause {
  return {
    kind: known(causeKinds, wire.kind, 'unknown'),
    message: wire.message,
    nodeRank: wire.nodeRank ?? null,
    node: wire.node || null,
    evidence:
      wire.evidence === null
        ? null
        : { line: wire.evidence.line || null, text: wire.evidence.text, rank: wire.evidence.rank ?? null },
    blame: known(blames, wire.blame, 'unknown'),
  };
}

export function taskEndToWire(end: TaskEnd): WireTaskExit {
  return {
    ...(end.exitCode === null ? {} : { exitCode: end.exitCode }),
    signal: end.signal ?? '',
    oomKilled: end.oomKilled,
    finishedAtMs: end.finishedAtMs ?? 0,
    statusLost: end.statusLost,
    startError: end.startError === null ? null : causeToWire(end.startError),
    logBytes: end.logBytes,
    gpuUsage: gpuUsageToWire(end.gpuUsage),
    failure: end.failure === null ? null : taskFailureToWire(end.failure),
    training: progressToWire(end.training),
  };
}

export function taskEndFromWire(wire: TaskExit__Output): TaskEnd {
  return {
    exitCode: wire.exitCode ?? null,
    signal: wire.signal || null,
    oomKilled: wire.oomKilled,
    finishedAtMs: wire.finishedAtMs || null,
    statusLost: wire.statusLost,
    startError: wire.startError === null ? null : causeFromWire(wire.startError),
    logBytes: wire.logBytes,
    gpuUsage: gpuUsageFromWire(wire.gpuUsage),
    failure: wire.failure === null ? null : taskFailureFromWire(wire.failure),
    training: progressFromWire(wire.training),
  };
}

export function taskReportToWire(report: TaskReport): WireTaskReport {
  return {
    task: taskRefToWire(report.task),
    state: taskStateWire.toWire(report.state),
    exit: report.exit === null ? null : taskEndToWire(report.exit),
    startedAtMs: report.startedAtMs ?? 0,
    runningForMs: report.runningForMs ?? 0,
    frozen: report.frozen,
    doing: report.doing ?? '',
    trainingComplete: report.trainingComplete,
    training: progressToWire(report.training),
    hang: hangToWire(report.hang),
  };
}

export function taskReportFromWire(wire: TaskReport__Output): TaskReport | null {
  const task = taskRefFromWire(wire.task);
  if (task === null) return null;
  return {
    task,
    state: taskStateWire.fromWire(wire.state),
    exit: wire.exit === null ? null : taskEndFromWire(wire.exit),
    startedAtMs: wire.startedAtMs || null,
    runningForMs: wire.runningForMs || null,
    frozen: wire.frozen,
    doing: wire.doing || null,
    trainingComplete: wire.trainingComplete,
    training: progressFromWire(wire.training),
    hang: hangFromWire(wire.hang),
  };
}

function attemptToWire(attempt: AttemptView): Attempt {
  return {
    number: attempt.number,
    state: attemptStateWire.toWire(attempt.state),
    tasks: attempt.tasks.map((task) => ({
      nodeRank: task.nodeRank,
      node: task.node,
      gpuUuids: [...task.gpuUuids],
      state: taskStateWire.toWire(task.state),
      exit: task.exit === null ? null : taskEndToWire(task.exit),
      frozen: task.frozen,
      doing: task.doing ?? '',
      address: task.address ?? '',
      gpuIndexes: [...task.gpuIndexes],
    })),
    cause: attempt.cause === null ? null : causeToWire(attempt.cause),
    allocatedAtMs: attempt.allocatedAtMs,
    runningAtMs: attempt.runningAtMs ?? 0,
    endedAtMs: attempt.endedAtMs ?? 0,
    masterAddr: attempt.masterAddr ?? '',
    masterPort: attempt.masterPort ?? 0,
    gpuUsage: gpuUsageToWire(attempt.gpuUsage),
    resume: resumeToWire(attempt.resume),
    leaseMs: attempt.leaseMs ?? 0,
    signs: attempt.signs.map(attemptSignToWire),
    hungAtMs: attempt.hungAtMs ?? 0,
    hangs: attempt.hangs,
  };
}

function attemptFromWire(wire: Attempt__Output): AttemptView {
  return {
    number: wire.number,
    state: attemptStateWire.fromWire(wire.state),
    tasks: wire.tasks.map((task) => ({
      nodeRank: task.nodeRank,
      node: task.node,
      gpuUuids: task.gpuUuids,
      state: taskStateWire.fromWire(task.state),
      exit: task.exit === null ? null : taskEndFromWire(task.exit),
      frozen: task.frozen,
      doing: task.doing || null,
      address: task.address || null,
      gpuIndexes: task.gpuIndexes,
    })),
    cause: wire.cause === null ? null : causeFromWire(wire.cause),
    allocatedAtMs: wire.allocatedAtMs,
    runningAtMs: wire.runningAtMs || null,
    endedAtMs: wire.endedAtMs || null,
    masterAddr: wire.masterAddr || null,
    masterPort: wire.masterPort || null,
    gpuUsage: gpuUsageFromWire(wire.gpuUsage),
    resume: resumeFromWire(wire.resume),
    leaseMs: wire.leaseMs || null,
    signs: wire.signs.flatMap(attemptSignFromWire),
    hungAtMs: wire.hungAtMs || null,
    hangs: wire.hangs,
  };
}

export function pendingToWire(pending: PendingReason): WirePending {
  const { kind, message, remedy, waitMs = 0 } = pending;
  return { kind, message, remedy: remedy ?? '', waitMs };
}

export function pendingFromWire(wire: PendingReason__Output): PendingReason {
  return {
    kind: known(pendingKinds, wire.kind, 'scheduling'),
    message: wire.message,
    remedy: wire.remedy || null,
    ...(wire.waitMs > 0 ? { waitMs: wire.waitMs } : {}),
  };
}

export function jobToWire(job: JobView): Job {
  return {
    id: job.id,
    name: job.name,
    project: job.project,
    state: jobStateWire.toWire(job.state),
    specJson: JSON.stringify(job.spec),
    submittedAtMs: job.submittedAtMs,
    endedAtMs: job.endedAtMs ?? 0,
    pending: job.pending === null ? null : pendingToWire(job.pending),
    cause: job.cause === null ? null : causeToWire(job.cause),
    attempts: job.attempts.map(attemptToWire),
    arrayId: job.array?.id ?? '',
    arrayIndex: job.array?.index ?? 0,
    arraySize: job.array?.size ?? 0,
    requeuedFrom: job.requeuedFrom ?? '',
    resumedFrom: resumedFromToWire(job.resumedFrom),
    submitSeq: job.submitSeq,
    leftOut: job.leftOut.map((each) => excludedNodeToWire(each, causeToWire)),
    checkpoints: job.checkpoints.map(checkpointToWire),
    training: progressToWire(job.training),
    ledger: ledgerToWire(job.ledger),
    preemptions: job.preemptions,
    batchScale: job.batchScale,
    lrScale: job.lrScale,
    extraRuntimeMs: job.extraRuntimeMs,
    failures: job.failures,
    outputAtMs: job.outputAtMs ?? 0,
    user: job.user ?? '',
  };
}

export function jobFromWire(wire: Job__Output): JobView {
  return {
    id: wire.id,
    name: wire.name,
    project: wire.project,
    user: wire.user || null,
    state: jobStateWire.fromWire(wire.state),
    spec: JSON.parse(wire.specJson || '{}') as Record<string, unknown>,
    submittedAtMs: wire.submittedAtMs,
    endedAtMs: wire.endedAtMs || null,
    pending: wire.pending === null ? null : pendingFromWire(wire.pending),
    cause: wire.cause === null ? null : causeFromWire(wire.cause),
    attempts: wire.attempts.map(attemptFromWire),
    array: wire.arrayId === '' ? null : { id: wire.arrayId, index: wire.arrayIndex, size: wire.arraySize },
    requeuedFrom: wire.requeuedFrom || null,
    resumedFrom: resumedFromFromWire(wire.resumedFrom),
    submitSeq: wire.submitSeq,
    leftOut: wire.leftOut
      .map((each) => excludedNodeFromWire(each, causeFromWire))
      .filter((each) => each !== null),
    checkpoints: wire.checkpoints.map(checkpointFromWire),
    training: progressFromWire(wire.training),
    ledger: ledgerFromWire(wire.ledger),
    preemptions: wire.preemptions,
    batchScale: wire.batchScale || 1,
    lrScale: wire.lrScale || 1,
    extraRuntimeMs: wire.extraRuntimeMs,
    failures: wire.failures,
    outputAtMs: wire.outputAtMs || null,
  };
}

export function eventToWire(event: EventView): WireEvent {
  const { cloudEvent, ...rest } = event;
  return { ...rest, cloudEventJson: JSON.stringify(cloudEvent) };
}

export function eventFromWire(wire: Event__Output): EventView {
  const { cloudEventJson, ...rest } = wire;
  return { ...rest, cloudEvent: JSON.parse(cloudEventJson) as Record<string, unknown> };
}

export function logPieceToWire({ missing, ...piece }: LogPiece): WireLogPiece {
  if (missing === null) return piece;
  const { silentForMs, ...rest } = missing;
  return { ...piece, missing: { ...rest, ...(silentForMs === null ? {} : { silentForMs }) } };
}

export function logPieceFromWire(wire: LogPiece__Output): LogPiece {
  const { attempt, nodeRank, offset, data, complete } = wire;
  const missing =
    wire.missing === null
      ? null
      : {
          node: wire.missing.node,
          bytes: wire.missing.bytes,
          silentForMs: wire.missing.silentForMs ?? null,
        };
  return { attempt, nodeRank, offset, data, complete, missing };
}

export function clusterFromWire(wire: Cluster__Output): ClusterView {
  return { ...wire };
}
