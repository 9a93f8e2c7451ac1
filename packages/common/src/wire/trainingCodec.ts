/** Wire messages ↔ the words of training and checkpoints. Numbers that are not finite count as not read. */
import {
  type Checkpoint,
  type CheckpointFacts,
  checkpointVerdicts,
  verificationDepths,
} from '../checkpoints.ts';
import type { AttemptSign__Output, AttemptSign as WireAttemptSign } from '../gen/muster/v1/AttemptSign.ts';
import type { Checkpoint__Output, Checkpoint as WireCheckpoint } from '../gen/muster/v1/Checkpoint.ts';
import type {
  CheckpointSeen__Output,
  CheckpointSeen as WireCheckpointSeen,
} from '../gen/muster/v1/CheckpointSeen.ts';
import type { HangSign__Output, HangSign as WireHangSign } from '../gen/muster/v1/HangSign.ts';
import type { LedgerEntry__Output, LedgerEntry as WireLedgerEntry } from '../gen/muster/v1/LedgerEntry.ts';
import type { Resume__Output, Resume as WireResume } from '../gen/muster/v1/Resume.ts';
import type { ResumedFrom__Output, ResumedFrom as WireResumedFrom } from '../gen/muster/v1/ResumedFrom.ts';
import type {
  TrainingProgress__Output,
  TrainingProgress as WireProgress,
} from '../gen/muster/v1/TrainingProgress.ts';
import type { TrainingRow__Output, TrainingRow as WireRow } from '../gen/muster/v1/TrainingRow.ts';
import type { TrainingSign__Output, TrainingSign as WireSign } from '../gen/muster/v1/TrainingSign.ts';
import type { TaskRef } from '../ids.ts';
import { causeKinds } from '../spec/causes.ts';
import {
  gpuStillnesses,
  type HangSign,
  isTrainingMetricName,
  type TrainingMetricName,
  type TrainingProgress,
  type TrainingRow,
  type TrainingSign,
  type TrainingValues,
  trainingSignKinds,
} from '../training.ts';
import { type AttemptSign, type LedgerEntry, ledgerKinds, type Resume, type ResumedFrom } from '../views.ts';
import { known } from './enums.ts';
import { taskRefFromWire, taskRefToWire } from './taskRef.ts';

/** Fields of a row on the wire, by metric. */
const rowFields = [
  ['step', 'step'],
  ['train_loss', 'trainLoss'],
  ['eval_loss', 'evalLoss'],
  ['learning_rate', 'learningRate'],
  ['grad_norm', 'gradNorm'],
  ['epoch', 'epoch'],
  ['step_seconds', 'stepSeconds'],
  ['tokens_per_second', 'tokensPerSecond'],
  ['samples_per_second', 'samplesPerSecond'],
] as const satisfies readonly (readonly [TrainingMetricName, keyof TrainingRow__Output])[];

function finite(values: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => Number.isFinite(value)));
}

function trainingValues(values: Readonly<Record<string, number>>): TrainingValues {
  return Object.fromEntries(Object.entries(finite(values)).filter(([name]) => isTrainingMetricName(name)));
}

export function progressToWire(progress: TrainingProgress | null): WireProgress | null {
  if (progress === null) return null;
  const { framework, latest, totalSteps, etaMs, rows, atMs } = progress;
  return {
    framework: framework ?? '',
    latest: { ...latest },
    ...(totalSteps === null ? {} : { totalSteps }),
    ...(etaMs === null ? {} : { etaMs }),
    rows,
    atMs,
  };
}

export function progressFromWire(wire: TrainingProgress__Output | null): TrainingProgress | null {
  if (wire === null) return null;
  return {
    framework: wire.framework || null,
    latest: trainingValues(wire.latest),
    totalSteps: wire.totalSteps ?? null,
    etaMs: wire.etaMs ?? null,
    rows: wire.rows,
    atMs: wire.atMs,
  };
}

export function trainingRowToWire({ position, atMs, values, lossNotFinite }: TrainingRow): WireRow {
  const row: WireRow = { position, atMs, lossNotFinite };
  for (const [name, field] of rowFields) {
    const value = values[name];
    if (value !== undefined) row[field] = value;
  }
  return row;
}

export function trainingRowFromWire(wire: TrainingRow__Output): TrainingRow {
  const values: Partial<Record<TrainingMetricName, number>> = {};
  for (const [name, field] of rowFields) {
    const value = wire[field];
    if (value !== undefined && Number.isFinite(value)) values[name] = value;
  }
  const { position, atMs, lossNotFinite } = wire;
  return { position, atMs, values, lossNotFinite };
}

export function trainingSignToWire(sign: TrainingSign): WireSign {
  const { step, lastGoodStep, rank, ...rest } = sign;
  return {
    ...rest,
    ...(step === null ? {} : { step }),
    ...(lastGoodStep === null ? {} : { lastGoodStep }),
    ...(rank === null ? {} : { rank }),
  };
}

/** null: a kind that this version does not know. */
export function trainingSignFromWire(wire: TrainingSign__Output): TrainingSign | null {
  const kind = trainingSignKinds.find((each) => each === wire.kind);
  if (kind === undefined) return null;
  const { step = null, lastGoodStep = null, rank = null, line, text } = wire;
  return { kind, step, lastGoodStep, rank, line, text };
}

export function attemptSignToWire({ kind, step, lastGoodStep }: AttemptSign): WireAttemptSign {
  return {
    kind,
    ...(step === null ? {} : { step }),
    ...(lastGoodStep === null ? {} : { lastGoodStep }),
  };
}

/** Empty for a kind that this version does not know. */
export function attemptSignFromWire(wire: AttemptSign__Output): readonly AttemptSign[] {
  const kind = trainingSignKinds.find((each) => each === wire.kind);
  if (kind === undefined) return [];
  return [{ kind, step: wire.step ?? null, lastGoodStep: wire.lastGoodStep ?? null }];
}

export function hangToWire(hang: HangSign | null): WireHangSign | null {
  if (hang === null) return null;
  const { rank, ...rest } = hang;
  return { ...rest, ...(rank === null ? {} : { rank }) };
}

export function hangFromWire(wire: HangSign__Output | null): HangSign | null {
  if (wire === null) return null;
  const { quietForMs, usualMs, gpus, rank = null } = wire;
  return { quietForMs, usualMs, gpus: known(gpuStillnesses, gpus, 'idle'), rank };
}

/** @param saved without what only the coordinator knows, when an agent says it */
export function checkpointToWire(saved: CheckpointFacts & Partial<Checkpoint>): WireCheckpoint {
  const { step, saveDurationMs, digest, depth, problem, metrics, ...rest } = saved;
  return {
    ...rest,
    ...(step === null ? {} : { step }),
    ...(saveDurationMs === null ? {} : { saveDurationMs }),
    metrics: { ...metrics },
    digest: digest ?? '',
    depth: depth ?? '',
    problem: problem ?? '',
  };
}

export function checkpointFromWire(wire: Checkpoint__Output): Checkpoint {
  return {
    name: wire.name,
    version: wire.version,
    step: wire.step ?? null,
    format: wire.format,
    bytes: wire.bytes,
    files: wire.files,
    savedAtMs: wire.savedAtMs,
    saveDurationMs: wire.saveDurationMs ?? null,
    metrics: finite(wire.metrics),
    digest: wire.digest || null,
    verdict: known(checkpointVerdicts, wire.verdict, 'unverified'),
    depth: verificationDepths.find((each) => each === wire.depth) ?? null,
    problem: wire.problem || null,
    attempt: wire.attempt,
    node: wire.node,
    shared: wire.shared,
    suspect: wire.suspect,
    reread: wire.reread,
    ...(wire.diverged ? { diverged: true } : {}),
  };
}

export interface CheckpointSeen {
  readonly task: TaskRef;
  readonly checkpoint: CheckpointFacts;
  readonly shared: boolean;
  /** Begun after the first signal of a stop. */
  readonly afterStop: boolean;
}

export function checkpointSeenToWire({
  task,
  checkpoint,
  shared,
  afterStop,
}: CheckpointSeen): WireCheckpointSeen {
  return {
    task: taskRefToWire(task),
    checkpoint: { ...checkpointToWire(checkpoint), shared },
    afterStop,
  };
}

export function checkpointSeenFromWire(wire: CheckpointSeen__Output): CheckpointSeen | null {
  const task = taskRefFromWire(wire.task);
  if (task === null || wire.checkpoint === null) return null;
  const {
    attempt: _attempt,
    node: _node,
    suspect: _suspect,
    diverged: _diverged,
    shared,
    ...checkpoint
  } = checkpointFromWire(wire.checkpoint);
  return { task, checkpoint, shared, afterStop: wire.afterStop };
}

export function resumeToWire(resume: Resume | null): WireResume | null {
  if (resume === null) return null;
  return { name: resume.name, ...(resume.step === null ? {} : { step: resume.step }) };
}

export function resumeFromWire(wire: Resume__Output | null): Resume | null {
  return wire === null ? null : { name: wire.name, step: wire.step ?? null };
}

export function resumedFromToWire(from: ResumedFrom | null): WireResumedFrom | null {
  if (from === null) return null;
  const { jobId, name, step } = from;
  return { jobId: jobId ?? '', name, ...(step === null ? {} : { step }) };
}

export function resumedFromFromWire(wire: ResumedFrom__Output | null): ResumedFrom | null {
  return wire === null ? null : { jobId: wire.jobId || null, name: wire.name, step: wire.step ?? null };
}

export function ledgerToWire(ledger: readonly LedgerEntry[]): WireLedgerEntry[] {
  return ledger.map(({ kind, cause, gpuSeconds }) => ({ kind, cause: cause ?? '', gpuSeconds }));
}

export function ledgerFromWire(wire: readonly LedgerEntry__Output[]): readonly LedgerEntry[] {
  return wire.flatMap(({ kind: name, cause, gpuSeconds }) => {
    const kind = ledgerKinds.find((each) => each === name);
    if (kind === undefined) return [];
    return { kind, cause: cause === '' ? null : known(causeKinds, cause, 'unknown'), gpuSeconds };
  });
}
