/** The criteria of phases: conditions on the metrics that a phase has printed. The library behind them is loaded when there is one. */
import { MusterError } from '@muster/common/errors';
import type { JobSpec } from '@muster/common/spec/types';
import { isDivergence, isTrainingMetricName, trainingMetricNames } from '@muster/common/training';
import type { CheckedCondition } from '../alerts/condition.ts';
import type { KnownName } from '../alerts/names.ts';
import { SubjectValues } from '../alerts/subjectValues.ts';
import type { PhaseJudgement } from '../lifecycle/event.ts';
import type { Attempt } from '../model.ts';

/** `loss` is what most programs call it. */
const lossName = 'loss';
const losses: readonly string[] = [lossName, 'train_loss', 'eval_loss'];

const knownNames: Readonly<Record<string, KnownName>> = Object.fromEntries(
  [lossName, ...trainingMetricNames].map((name) => [
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

/**
 * @param attempts of the phase, oldest first
 * @returns the verdict, and what the criterion named. A criterion that this version does not understand is `unknown`
 */
export async function judgePhase(
  success: string,
  attempts: readonly Pick<Attempt, 'tasks' | 'signs'>[],
): Promise<PhaseJudgement> {
  const { checkCondition } = await import('../alerts/condition.ts');
  let condition: CheckedCondition;
  try {
    condition = checkCondition(success, knownNames);
  } catch {
    return { verdict: 'unknown', values: {}, notFinite: [] };
  }
  const newest = newestValues(attempts);
  const found = Object.fromEntries(condition.names.map((name) => [name, newest(name)]));
  const notFinite = condition.names.filter((name) => Number.isNaN(found[name]));
  const isKnown = (name: string) => !notFinite.includes(name);
  const values = Object.fromEntries(
    condition.names.map((name) => [name, isKnown(name) ? (found[name] ?? null) : null]),
  );
  // No comparison with it holds, and neither does a criterion that asks for the opposite of one.
  if (notFinite.length > 0) return { verdict: 'unmet', values, notFinite };
  const holds = condition.evaluate(new SubjectValues((name) => values[name] ?? null));
  return { verdict: holds === null ? 'unknown' : holds ? 'met' : 'unmet', values, notFinite };
}

/**
 * The value of a metric in the newest attempt that shows it, by its lowest rank; NaN if that is no finite number. A loss of an attempt
 * whose loss became NaN or diverged is unknown: what stands in the output may be from before that.
 */
function newestValues(
  attempts: readonly Pick<Attempt, 'tasks' | 'signs'>[],
): (name: string) => number | null {
  return (name) => {
    const metric = name === lossName ? 'train_loss' : name;
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
