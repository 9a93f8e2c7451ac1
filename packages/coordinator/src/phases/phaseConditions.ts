/**
 * The criteria of phases: conditions on the metrics that a phase has printed, or that an evaluation of its checkpoint has. The library
 * behind them is loaded when there is one.
 */
import { MusterError } from '@muster/common/errors';
import { criterionMetric } from '@muster/common/phases';
import type { JobSpec } from '@muster/common/spec/types';
import { isDivergence, isTrainingMetricName, trainingMetricNames } from '@muster/common/training';
import type { CheckedCondition } from '../alerts/condition.ts';
import type { KnownName } from '../alerts/names.ts';
import { SubjectValues } from '../alerts/subjectValues.ts';
import type { PhaseJudgement } from '../lifecycle/event.ts';
import type { Attempt } from '../model.ts';

const losses: readonly string[] = ['loss', 'train_loss', 'eval_loss'];

const knownNames: Readonly<Record<string, KnownName>> = Object.fromEntries(
  ['loss', ...trainingMetricNames].map((name) => [
    name,
    { type: 'double', meaning: 'newest value in the phase' },
  ]),
);

/** @throws {MusterError} `invalid`, with the criteria of phases that are not conditions and the column of each */
export async function requirePhaseConditions({ phases }: Pick<JobSpec, 'phases'>): Promise<void> {
  if (phases.every(({ success }) => success === null)) return;
  const { checkCondition } = await import('../alerts/condition.ts');
  const problems = phases.flatMap(({ success }, index) => {
    if (success === null) return [];
    try {
      checkCondition(success, knownNames);
      return [];
    } catch (error) {
      const { column, message } = error as { column?: number; message: string };
      const path = `phases[${index}].success`;
      const place = { path, line: null, column: null, flag: null };
      return [{ ...place, message: `column ${column ?? 1}: ${message}`, expected: null, suggestion: null }];
    }
  });
  const [first] = problems;
  if (first === undefined) return;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  throw new MusterError('invalid', `invalid spec: ${first.path}: ${first.message}${more}`, { problems });
}

/** The metric that an evaluation measures, with what it has found out. null: it has failed, or there is none. */
export interface MeasuredMetric {
  readonly name: string;
  readonly value: number | null;
}

/** @returns whether the criterion depends on the metric. One that this version does not understand depends on none */
export async function dependsOn(success: string, metric: string): Promise<boolean> {
  return (await criterion(success))?.names.some((name) => criterionMetric(name) === metric) ?? false;
}

/** An attempt of a phase with what it has printed last. */
export interface PhaseAttempt extends Pick<Attempt, 'tasks' | 'signs'> {
  /** Which of its metrics can no longer come. Absent and null: all are here. */
  readonly lost?: string | null;
}

/**
 * @param attempts of the phase, oldest first
 * @param measured the only source of that metric. null: all are of the output
 * @returns the verdict, and what the criterion named. A criterion that this version does not understand is `unknown`
 */
export async function judgePhase(
  success: string,
  attempts: readonly PhaseAttempt[],
  measured: MeasuredMetric | null = null,
): Promise<PhaseJudgement> {
  const condition = await criterion(success);
  if (condition === null) return { verdict: 'unknown', values: {}, notFinite: [] };
  // A value from before what was lost may not be the newest, and one from among it may not be the last.
  const lostAt = attempts.findLastIndex(({ lost = null }) => lost !== null);
  const printed = newestValues(attempts.slice(lostAt + 1));
  const newest = (name: string) =>
    measured !== null && criterionMetric(name) === measured.name ? measured.value : printed(name);
  const found = Object.fromEntries(condition.names.map((name) => [name, newest(name)]));
  const notFinite = condition.names.filter((name) => Number.isNaN(found[name]));
  const isKnown = (name: string) => !notFinite.includes(name);
  const values = Object.fromEntries(
    condition.names.map((name) => [name, isKnown(name) ? (found[name] ?? null) : null]),
  );
  // No comparison with it holds, and neither does a criterion that asks for the opposite of one.
  if (notFinite.length > 0) return { verdict: 'unmet', values, notFinite };
  const holds = condition.evaluate(new SubjectValues((name) => values[name] ?? null));
  const lost = attempts[lostAt]?.lost ?? null;
  const verdict = holds === null ? 'unknown' : holds ? 'met' : 'unmet';
  return { verdict, values, notFinite, ...(lost === null ? {} : { lost }) };
}

async function criterion(success: string): Promise<CheckedCondition | null> {
  const { checkCondition } = await import('../alerts/condition.ts');
  try {
    return checkCondition(success, knownNames);
  } catch {
    return null;
  }
}

/**
 * The value of a metric in the newest attempt that shows it, by its lowest rank; NaN if that is no finite number. A loss of an attempt
 * whose loss became NaN or diverged is unknown: what stands in the output may be from before that.
 */
function newestValues(attempts: readonly PhaseAttempt[]): (name: string) => number | null {
  return (name) => {
    const metric = criterionMetric(name);
    if (!isTrainingMetricName(metric)) return null;
    for (const { tasks, signs } of attempts.toReversed()) {
      if (losses.includes(name) && signs.some(({ kind }) => isDivergence(kind))) return null;
      for (const { exit } of tasks) {
        const { latest, notFinite = [] } = exit?.training ?? { latest: {} };
        if (notFinite.includes(metric)) return Number.NaN;
        const value = latest[metric];
        if (value !== undefined) return value;
      }
    }
    return null;
  };
}
