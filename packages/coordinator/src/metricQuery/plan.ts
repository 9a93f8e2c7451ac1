/** What a question about metrics asks for, checked. Pure: now is an argument. */
import { MusterError } from '@muster/common/errors';
import { metricAliases, metricNamed, type NamedMetric, namedMetrics } from '@muster/common/metricNames';
import { closest } from '@muster/common/spec/suggest';
import { type Aggregation, aggregations, type Grouping, groupings, type Shape } from './aggregate.ts';
import { timeOf } from './timeRange.ts';

/** As it came. */
export interface AskedMetrics {
  readonly jobId: string;
  readonly name: string;
  readonly sinceMs?: number | undefined;
  readonly attempt?: number | undefined;
  readonly node?: string | undefined;
  readonly user?: string | undefined;
  readonly project?: string | undefined;
  readonly startTime?: string | undefined;
  readonly endTime?: string | undefined;
  readonly stepMs?: number | undefined;
  readonly aggregation?: string | undefined;
  readonly by?: string | undefined;
}

export interface MetricPlan {
  readonly metric: NamedMetric;
  /** Of one job, as it was named; null: of several, or of none. */
  readonly job: string | null;
  readonly attempt: number | null;
  readonly node: string | null;
  readonly user: string | null;
  readonly project: string | null;
  /** Wall clock; infinite where nothing was asked for: everything that is kept. */
  readonly fromMs: number;
  readonly toMs: number;
  /** null: every value. */
  readonly shape: Shape | null;
}

/** Prometheus answers no more for each series. */
export const stepsMax = 11_000;
const stepMsMin = 1_000;
/** Over several jobs where no step is asked for: as many as a chart has columns. */
const usualSteps = 240;
const usualSpanMs = 6 * 3_600_000;
const readingMs = 10_000;
const shownMax = 80;

/** @throws {MusterError} `invalid`, with the names there are and the one that was probably meant */
export function planOf(asked: AskedMetrics, nowMs: number): MetricPlan {
  const metric = knownMetric(asked.name);
  const { jobId, node = null, user = null, project = null, attempt = null } = asked;
  const job = jobId === '' ? null : jobId;
  checkScope(metric, { job, node, user, project, attempt });
  const { fromMs: givenFromMs, toMs: givenToMs } = rangeOf(asked, nowMs);
  const toMs = givenToMs ?? nowMs;
  const isOverJobs = job === null && (metric.subject === 'gpu' || metric.subject === 'training');
  const fromMs = isOverJobs && givenFromMs === null ? toMs - usualSpanMs : givenFromMs;
  const shape = shapeOf(asked, metric, {
    isOverJobs,
    ofNode: node !== null,
    fromMs: fromMs ?? Number.NEGATIVE_INFINITY,
    toMs,
  });
  return {
    metric,
    job,
    attempt,
    node,
    user,
    project,
    fromMs: fromMs ?? Number.NEGATIVE_INFINITY,
    // A clock that was set back has values in its future, which are the newest ones.
    toMs: givenToMs ?? Number.POSITIVE_INFINITY,
    shape,
  };
}

function knownMetric(name: string): NamedMetric {
  const metric = metricNamed(name);
  if (metric !== null) return metric;
  const known = [...namedMetrics.keys()];
  const meant = closest(name, [...known, ...Object.keys(metricAliases)]);
  const hint = meant === null ? '' : `did you mean ${meant}? `;
  throw invalid(`there is no metric "${cut(name)}"; ${hint}The metrics are ${known.join(', ')}`);
}

function checkScope(
  { name, subject }: NamedMetric,
  { job, node, user, project, attempt }: Pick<MetricPlan, 'job' | 'node' | 'user' | 'project' | 'attempt'>,
): void {
  const given = Object.entries({ job_id: job, node, user, project }).flatMap(([field, value]) =>
    value === null ? [] : [field],
  );
  const refuse = (fields: readonly string[], why: string) => {
    const wrong = given.find((field) => fields.includes(field));
    if (wrong !== undefined) throw invalid(`${wrong}: ${name} ${why}; omit ${wrong}`);
  };
  if (job !== null) {
    refuse(['user', 'project'], 'is asked for one job');
    if (subject === 'training') refuse(['node'], 'comes from the output of jobs, not from nodes');
  }
  if (attempt !== null && job === null) throw invalid('attempt: attempts are those of one job; give job_id');
  if (subject === 'cluster')
    refuse(['job_id', 'node', 'user', 'project'], 'is a metric of the cluster as a whole');
  if (subject === 'host') refuse(['user', 'project'], 'is a metric of nodes');
  if (subject === 'training') refuse(['node'], 'comes from the output of jobs, not from nodes');
}

/** @returns null: none was given */
function rangeOf(
  { sinceMs, startTime, endTime }: AskedMetrics,
  nowMs: number,
): { readonly fromMs: number | null; readonly toMs: number | null } {
  if (sinceMs !== undefined && sinceMs < 0) throw invalid(`since_ms: invalid length of time ${sinceMs}`);
  if (sinceMs !== undefined && startTime !== undefined)
    throw invalid('start_time: since_ms is given too; omit one of them');
  const toMs = endTime === undefined ? null : timeOf('end_time', endTime, nowMs);
  const fromMs =
    startTime !== undefined
      ? timeOf('start_time', startTime, nowMs)
      : sinceMs === undefined
        ? null
        : nowMs - sinceMs;
  if (fromMs !== null && fromMs > (toMs ?? nowMs))
    throw invalid(`start_time: ${timeText(fromMs)} is after the end, ${timeText(toMs ?? nowMs)}`);
  return { fromMs, toMs };
}

function shapeOf(
  { stepMs, aggregation: askedAggregation, by: askedBy }: AskedMetrics,
  { name }: NamedMetric,
  {
    isOverJobs,
    ofNode,
    fromMs,
    toMs,
  }: {
    readonly isOverJobs: boolean;
    readonly ofNode: boolean;
    readonly fromMs: number;
    readonly toMs: number;
  },
): Shape | null {
  const isAsked = stepMs !== undefined || askedAggregation !== undefined || askedBy !== undefined;
  if (!isAsked && !isOverJobs) return null;
  const addsUp = name === 'gpu_energy_joules';
  const aggregation =
    askedAggregation === undefined
      ? addsUp
        ? 'sum'
        : 'mean'
      : knownWord<Aggregation>('aggregation', askedAggregation, aggregations);
  if (aggregation === 'sum' && !addsUp)
    throw invalid(`aggregation: values of ${name} do not add up over time; use mean, min, max, p95 or last`);
  const by =
    askedBy === undefined
      ? isOverJobs && !ofNode
        ? 'job'
        : 'gpu'
      : knownWord<Grouping>('by', askedBy, groupings);
  if (stepMs === undefined)
    return {
      aggregation,
      by,
      stepMs: isOverJobs && askedAggregation === undefined ? usualStepMs(toMs - fromMs) : null,
      toMs,
    };
  if (stepMs < stepMsMin) throw invalid(`step_ms: got ${stepMs}; expected ${stepMsMin} at least`);
  if ((toMs - fromMs) / stepMs > stepsMax && fromMs !== Number.NEGATIVE_INFINITY) {
    const enough = Math.ceil((toMs - fromMs) / stepsMax / 1_000) * 1_000;
    throw invalid(
      `step_ms: ${stepMs} gives more than ${stepsMax} values in that time; use ${enough} or more, or ask for less time`,
    );
  }
  return { aggregation, by, stepMs, toMs };
}

/** A multiple of the pace at which agents report. */
function usualStepMs(spanMs: number): number {
  return Math.max(readingMs, Math.ceil(spanMs / usualSteps / readingMs) * readingMs);
}

function knownWord<Word extends string>(field: string, word: string, words: readonly Word[]): Word {
  const known = words.find((each) => each === word);
  if (known !== undefined) return known;
  const meant = closest(word, words);
  const hint = meant === null ? '' : `; did you mean ${meant}?`;
  throw invalid(`${field}: got "${cut(word)}"; expected ${words.join(', ')}${hint}`);
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function cut(text: string): string {
  return text.length > shownMax ? `${text.slice(0, shownMax)} …` : text;
}

function invalid(message: string): MusterError {
  return new MusterError('invalid', message);
}
