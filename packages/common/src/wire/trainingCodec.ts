/** Messages of training and checkpoints ↔ words of the domain. */
import {
  type Checkpoint,
  type CheckpointFacts,
  checkpointVerdicts,
  verificationDepths,
} from '../checkpoints.ts';
import type { TrainingRow__Output, TrainingRow as WireRow } from '../gen/muster/v1/TrainingRow.ts';
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
import { knownWord, message, needed, nullable, skip, sparse, word } from './mapping.ts';
import { taskRef } from './taskRef.ts';

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

/** Values of metrics that this version knows. A number that is not finite was not read. */
const trainingValues = {
  toWire: (values: TrainingValues) => ({ ...values }),
  fromWire: (wire: Readonly<Record<string, number>>): TrainingValues =>
    Object.fromEntries(
      Object.entries(wire).filter(([name, value]) => isTrainingMetricName(name) && Number.isFinite(value)),
    ),
};
export const progress = message<TrainingProgress>()('TrainingProgress', { latest: trainingValues });
export const { fromWire: progressFromWire } = nullable(progress);

/** A sign of a kind that this version does not know cannot be read. */
const signKind = needed(knownWord(trainingSignKinds));
export const { toWire: trainingSignToWire, fromWire: trainingSignFromWire } = message<TrainingSign>()(
  'TrainingSign',
  { kind: signKind },
);
export const attemptSign = message<AttemptSign>()('AttemptSign', { kind: signKind });
export const hang = message<HangSign>()('HangSign', { gpus: word(gpuStillnesses, 'idle') });
export const { toWire: hangToWire, fromWire: hangFromWire } = nullable(hang);

const ofCheckpoint = {
  verdict: word(checkpointVerdicts, 'unverified'),
  depth: knownWord(verificationDepths),
};
export const checkpointWire = message<Checkpoint>()('Checkpoint', { ...ofCheckpoint, diverged: sparse() });

export interface CheckpointSeen {
  readonly task: TaskRef;
  readonly checkpoint: CheckpointFacts;
  readonly shared: boolean;
  /** Begun after the first signal of a stop. */
  readonly afterStop: boolean;
}

const facts = message<CheckpointFacts>()('Checkpoint', {
  ...ofCheckpoint,
  attempt: skip,
  node: skip,
  shared: skip,
  suspect: skip,
  diverged: skip,
});
export const { toWire: checkpointSeenToWire, fromWire: checkpointSeenFromWire } = message<CheckpointSeen>()(
  'CheckpointSeen',
  { task: needed(taskRef), checkpoint: needed(facts) },
);

export const resume = message<Resume>()('Resume');
export const { toWire: resumeToWire, fromWire: resumeFromWire } = nullable(resume);
export const resumedFrom = message<ResumedFrom>()('ResumedFrom');
export const ledgerEntry = message<LedgerEntry>()('LedgerEntry', {
  kind: needed(knownWord(ledgerKinds)),
  cause: word(causeKinds, 'unknown'),
});
