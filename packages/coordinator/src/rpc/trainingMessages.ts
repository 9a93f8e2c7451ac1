/** What agents say of checkpoints and of training, kept within bounds: it is stored, and shown to people. */

import { type CheckpointFacts, type CheckpointSeen, externalCheckpoint } from '@muster/common/checkpoints';
import type { CheckpointSeen__Output } from '@muster/common/gen/muster/v1/CheckpointSeen';
import type { TrainingSignSeen__Output } from '@muster/common/gen/muster/v1/TrainingSignSeen';
import type { NodeName } from '@muster/common/ids';
import type { TrainingProgress } from '@muster/common/training';
import type { TaskReport } from '@muster/common/views';
import { checkpointSeenFromWire, taskRefFromWire, trainingSignFromWire } from '@muster/common/wire/codec';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import type { AgentIdentity } from '../caller.ts';
import { checkpointReporter } from '../lifecycle/checkpoints.ts';
import type { Saver } from '../lifecycle/event.ts';
import type { Loop } from '../loop.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { heldTask } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';

export interface TrainingMessageParts {
  readonly loop: Loop;
  readonly taskStatus: TaskStatusCache;
}

/** A path below a directory: 512 characters hold the deepest that programs make, and sixty-four of them a job. */
const nameLengthMax = 512;
const metricsMax = 32;
const wordLengthMax = 64;
const digestLengthMax = 128;
/** Longest time in milliseconds that a machine can have been up: a century. */
const spanMsMax = 100 * 366 * 86_400_000;
/** One line for people. */
const textLengthMax = 500;

/** There is a checkpoint, or something new is known of one: also while its job waits, when a node has found out more of it. */
export async function takeCheckpoint(
  { loop }: Pick<TrainingMessageParts, 'loop'>,
  caller: AgentIdentity,
  wire: CheckpointSeen__Output,
): Promise<void> {
  await loop.run(caller, (draft, nowMs) => applyCheckpoint(draft, caller.node, wire, nowMs));
}

/** The same as a command. */
export function applyCheckpoint(
  draft: Draft,
  node: NodeName,
  wire: CheckpointSeen__Output,
  nowMs: number,
): void {
  const seen = checkpointSeenFromWire(wire);
  if (seen === null) return;
  const { task, shared, afterStop } = seen;
  const checkpoint = boundedCheckpoint(seen.checkpoint);
  if (checkpoint === null || externalCheckpoint(checkpoint.name) !== null) return;
  const { attempt, nodeRank } = task;
  const saver = saverOf(seen);
  const reported = { kind: 'checkpoint', attempt, nodeRank, checkpoint, shared, afterStop } as const;
  const event = saver === undefined ? reported : { ...reported, saver };
  const job = draft.job(task.jobId);
  if (job !== undefined && checkpointReporter(job, event) === node)
    applyJobEvent(draft, task.jobId, event, nowMs);
}

/** @returns undefined: an older agent does not say */
function saverOf({ by, attempt, found }: CheckpointSeen): Saver | undefined {
  if (by !== undefined && isWord(by, wordLengthMax) && attempt !== undefined) return { job: by, attempt };
  return found === true ? null : undefined;
}

/** @returns null: no agent of ours says such a thing */
export function boundedCheckpoint(facts: CheckpointFacts): CheckpointFacts | null {
  const { name, version, format, digest, problem, metrics, fingerprint = null } = facts;
  const entries = Object.entries(metrics);
  const isSound =
    isNameBelowDirectory(name.startsWith('/') ? name.slice(1) : name) &&
    isWord(version, wordLengthMax) &&
    isWord(format, wordLengthMax) &&
    (digest === null || isWord(digest, digestLengthMax)) &&
    (fingerprint === null || isWord(fingerprint, wordLengthMax)) &&
    entries.length <= metricsMax &&
    entries.every(([metric]) => isWord(metric, wordLengthMax));
  return isSound ? { ...facts, problem: problem === null ? null : line(problem) } : null;
}

/** An agent renames what we name, and people read it on their terminals. */
function isNameBelowDirectory(name: string): boolean {
  return (
    name.length > 0 &&
    name.length <= nameLengthMax &&
    !/\p{Cc}/u.test(name) &&
    name.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

function isWord(text: string, lengthMax: number): boolean {
  return /^[\x21-\x7e]+$/.test(text) && text.length <= lengthMax;
}

export function line(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, textLengthMax);
}

/** Sent again on every connection; what is stored of it already changes nothing, but is shown again. */
export async function takeTrainingSign(
  { loop, taskStatus }: TrainingMessageParts,
  caller: AgentIdentity,
  wire: TrainingSignSeen__Output,
): Promise<void> {
  const task = taskRefFromWire(wire.task);
  const reported = wire.sign === null ? null : trainingSignFromWire(wire.sign);
  if (task === null || reported === null) return;
  const sign = { ...reported, text: line(reported.text) };
  const { attempt, nodeRank } = task;
  await loop.run(caller, (draft, nowMs) => {
    const held = heldTask(draft.job(task.jobId), task, caller.node);
    if (held === undefined || held.state === 'ended') return;
    applyJobEvent(draft, task.jobId, { kind: 'trainingSign', attempt, nodeRank, sign }, nowMs);
    taskStatus.recordSign(task, sign);
  });
}

/**
 * The programs of these tasks have left their `training_complete.marker`. To be called before the ends of tasks: whatever exit
 * code follows, their work is done.
 */
export function completeTraining(
  draft: Draft,
  node: NodeName,
  reports: readonly TaskReport[],
  nowMs: number,
): void {
  for (const { task, trainingComplete } of reports) {
    const job = draft.job(task.jobId);
    if (!trainingComplete || job === undefined || heldTask(job, task, node) === undefined) continue;
    if (job.state.kind === 'stopping' && job.state.outcome.next === 'succeeded') continue;
    const { attempt, nodeRank } = task;
    applyJobEvent(draft, task.jobId, { kind: 'trainingComplete', attempt, nodeRank }, nowMs);
  }
}

/** An end is stored with what it tells of the training. */
export function boundedReport(report: TaskReport): TaskReport {
  const { training, exit } = report;
  return {
    ...report,
    runningForMs: boundedSpan(report.runningForMs),
    startedBoottimeMs: boundedSpan(report.startedBoottimeMs),
    endedBoottimeMs: boundedSpan(report.endedBoottimeMs),
    training: boundedProgress(training),
    exit: exit === null ? null : { ...exit, training: boundedProgress(exit.training) },
  };
}

/** Returns null for a time that no machine of ours can have counted. */
function boundedSpan(ms: number | null): number | null {
  return ms !== null && ms >= 0 && ms <= spanMsMax ? ms : null;
}

function boundedProgress(progress: TrainingProgress | null): TrainingProgress | null {
  if (progress === null || progress.framework === null) return progress;
  const { framework } = progress;
  return { ...progress, framework: isWord(framework, wordLengthMax) ? framework : null };
}
