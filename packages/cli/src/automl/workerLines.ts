/** What the worker of AutoML tells by its output. Pure. */
import { isMapping } from '@muster/common/spec/path';

const errorStart = 'automl: error: ';

export interface AutomlProfile {
  readonly task: string;
  readonly metric: string;
  readonly rows: number;
  readonly libraries: readonly string[];
  readonly notes: readonly string[];
}

export interface AutomlOutcome {
  readonly trials: number;
  readonly metric: string;
  readonly members: number;
  readonly best: {
    readonly trial: number;
    readonly params: Readonly<Record<string, unknown>>;
    readonly validation: number;
  };
  /** Of the metric, on test rows. */
  readonly test: { readonly ensemble: number; readonly best: number; readonly baseline: number };
  readonly report: string;
}

/** @returns null: none was written */
export function errorLineIn(output: string): string | null {
  const line = linesOf(output).findLast((each) => each.startsWith(errorStart));
  return line?.slice(errorStart.length) ?? null;
}

/** @returns null: the output has none */
export function profileIn(output: string): AutomlProfile | null {
  const found = jsonAfter(output, 'automl profile: ');
  if (found === null) return null;
  const { task, metric, rows, libraries, notes } = found;
  return {
    task: String(task),
    metric: String(metric),
    rows: Number(rows),
    libraries: texts(libraries),
    notes: texts(notes),
  };
}

/** @returns null: the output has none */
export function outcomeIn(output: string): AutomlOutcome | null {
  const found = jsonAfter(output, 'automl result: ');
  if (found === null) return null;
  const { trials, metric, members, best, test, report } = found;
  if (!isMapping(best) || !isMapping(test)) return null;
  return {
    trials: Number(trials),
    metric: String(metric),
    members: Number(members),
    best: {
      trial: Number(best['trial']),
      params: isMapping(best['params']) ? best['params'] : {},
      validation: Number(best['validation']),
    },
    test: {
      ensemble: Number(test['ensemble']),
      best: Number(test['best']),
      baseline: Number(test['baseline']),
    },
    report: String(report),
  };
}

function jsonAfter(output: string, start: string): Readonly<Record<string, unknown>> | null {
  const line = linesOf(output).findLast((each) => each.startsWith(start));
  if (line === undefined) return null;
  try {
    const value: unknown = JSON.parse(line.slice(start.length));
    return isMapping(value) ? value : null;
  } catch {
    return null;
  }
}

function linesOf(output: string): readonly string[] {
  return output.split('\n').map((line) => line.trimEnd());
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}
