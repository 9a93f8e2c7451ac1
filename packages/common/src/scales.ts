/**
 * Batch size and learning rate after a failure. What stands in the command as a parameter is scaled there, which is a fact; to
 * any other program the scale is only offered, in its environment. Pure.
 */
import { paramsInPhase } from './phases.ts';
import { isBatchName, namedParameters } from './spec/placeholder.ts';
import { normalizeJobSpec } from './spec/serialize.ts';
import type { JobSpec } from './spec/types.ts';
import type { JobView } from './views.ts';

/** 1: as the user wrote it. */
export interface Scales {
  readonly batchScale: number;
  readonly lrScale: number;
}

type Scaled = keyof Scales;

/** Which parameters are scaled, by their names. */
const isScaledName: Readonly<Record<Scaled, (name: string) => boolean>> = {
  batchScale: isBatchName,
  lrScale: (name) => /(?:^|_)(?:learning_rate|lr)$/.test(name),
};

/** @returns what `{name}` in the command is replaced by: batch sizes stay integers, at least 1 */
export function scaledParam(name: string, value: string | number, scales: Scales): string {
  const amount = amountOf(value);
  if (amount !== null && scales.batchScale !== 1 && isScaledName.batchScale(name)) {
    return String(Math.max(1, Math.floor(roundedOff(amount * scales.batchScale))));
  }
  if (amount !== null && scales.lrScale !== 1 && isScaledName.lrScale(name)) {
    return String(roundedOff(amount * scales.lrScale));
  }
  return String(value);
}

function amountOf(value: string | number): number | null {
  const amount = Number(value);
  return String(value).trim() !== '' && Number.isFinite(amount) ? amount : null;
}

/** 0.0003 × 0.1 is 0.00003, and not 0.000030000000000000004. */
function roundedOff(value: number): number {
  return Number(value.toPrecision(12));
}

export interface ScaleTexts {
  /** `batch_size 16 in the command (32 × 0.5) after cuda_oom`, or `MUSTER_BATCH_SCALE=0.5 offered after cuda_oom`. */
  readonly lines: readonly string[];
  /** What to write so that a scale that is only offered is used. */
  readonly hints: readonly string[];
}

type ScaledJob = Pick<JobView, 'spec' | 'batchScale' | 'lrScale' | 'attempts'> &
  Partial<Pick<JobView, 'phases'>>;

/** Of the newest attempt, or of the next one while the job waits. */
export function scaleTexts(job: ScaledJob): ScaleTexts {
  const batch = textsOf(job, 'batchScale', {
    variable: 'MUSTER_BATCH_SCALE',
    causes: ['cuda_oom'],
    hint: 'Nothing shows that the program reads MUSTER_BATCH_SCALE. Pass the batch size in the command: --batch_size={batch_size}, with batch_size in params.',
  });
  const rate = textsOf(job, 'lrScale', {
    variable: 'MUSTER_LR_SCALE',
    causes: ['nan_loss', 'loss_divergence', 'loss_scale_exhausted'],
    hint: 'Nothing shows that the program reads MUSTER_LR_SCALE. Pass the learning rate in the command: --lr={lr}, with lr in params.',
  });
  return { lines: [...batch.lines, ...rate.lines], hints: [...batch.hints, ...rate.hints] };
}

interface Wording {
  readonly variable: string;
  readonly causes: readonly string[];
  readonly hint: string;
}

function textsOf(
  { spec, attempts, phases, ...scales }: ScaledJob,
  which: Scaled,
  { variable, causes, hint }: Wording,
): ScaleTexts {
  const scale = Number(scales[which].toPrecision(6));
  if (scale === 1) return { lines: [], hints: [] };
  const cause = attempts.findLast((attempt) => causes.includes(attempt.cause?.kind ?? ''))?.cause;
  const after = cause == null ? '' : ` after ${cause.kind}`;
  const whole = normalizeJobSpec(spec);
  const params = paramsInPhase(whole, phases?.index ?? null);
  const passed = passedParams({ ...whole, params }, which).map(
    ([name, value]) =>
      `${name} ${scaledParam(name, value, scales)} in the command (${value} × ${scale})${after}`,
  );
  if (passed.length > 0) return { lines: passed, hints: [] };
  return { lines: [`${variable}=${scale} offered${after}`], hints: [hint] };
}

/** The values of those parameters in the command that these scales change, as they are passed. Empty: all are as they were written. */
export function scaledParams(
  spec: Pick<JobSpec, 'command' | 'args' | 'params'>,
  scales: Scales,
): Readonly<Record<string, number>> {
  const changed = (['batchScale', 'lrScale'] as const).flatMap((which) =>
    scales[which] === 1 ? [] : passedParams(spec, which),
  );
  return Object.fromEntries(
    changed.map(([name, value]) => [name, Number(scaledParam(name, value, scales))] as const),
  );
}

/**
 * The least batch size that a scale makes of those in the command, before it is rounded: what would be below a lower bound must not
 * be rounded up to it. null: the command has none.
 */
export function leastBatch(
  spec: Pick<JobSpec, 'command' | 'args' | 'params'>,
  batchScale: number,
): number | null {
  const sizes = passedParams(spec, 'batchScale').map(([, value]) => roundedOff(Number(value) * batchScale));
  return sizes.length === 0 ? null : Math.min(...sizes);
}

/** Parameters with a number that stand in the command. */
function passedParams(
  { command, args, params }: Pick<JobSpec, 'command' | 'args' | 'params'>,
  which: Scaled,
): readonly (readonly [string, string | number])[] {
  const used = namedParameters([...command, ...args]);
  return Object.entries(params).filter(
    ([name, value]) => used.has(name) && isScaledName[which](name) && amountOf(value) !== null,
  );
}
