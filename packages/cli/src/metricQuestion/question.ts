/** A question about one metric, of whoever it is asked: `muster metrics NAME` with what narrows and aggregates it. */
import { metricNamed, namedMetrics } from '@muster/common/metricNames';
import {
  isJobMetricName,
  type MetricSeries,
  type MetricSource,
  type MetricsView,
} from '@muster/common/telemetry';
import { isTrainingMetricName } from '@muster/common/training';
import type { MetricsQuery, MusterApi } from '@muster/common/wire/client';
import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { durationMs } from '../flags.ts';
import { referentOf } from '../jobs/reference.ts';
import { csvOf, queryAll, writeLines } from '../metrics/exportMetrics.ts';
import { formatMetric, identityColumns } from '../metrics/metricsText.ts';
import { writeJson } from '../output/json.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { printable } from '../output/text.ts';
import { clockText } from '../output/times.ts';
import { valueText } from '../output/units.ts';
import type { Session } from '../session.ts';
import { followMetric } from './followMetric.ts';

export interface QuestionFlags {
  readonly follow?: true;
  readonly output?: 'table' | 'json' | 'csv';
  readonly since?: number;
  readonly attempt?: number;
  readonly start?: string;
  readonly end?: string;
  readonly step?: number;
  readonly aggregation?: string;
  readonly by?: string;
  readonly node?: string;
  readonly user?: string;
  readonly project?: string;
  readonly superseded?: true;
}

const dayMs = 24 * 60 * 60 * 1_000;
/** Of a chart that takes a line: more than it has columns. */
const chartPoints = 2_000;

export function withQuestion(command: Command): Command {
  return command
    .option(
      '-f, --follow',
      'print values as they arrive, or with --step one for each step, until interrupted',
    )
    .option(
      '--start <time>',
      'only values since TIME: -30m, now, 2026-01-02T03:04:05Z or milliseconds since 1970',
    )
    .option('--end <time>', 'only values until TIME; default: now')
    .option(
      '--step <duration>',
      'one value for each step of DURATION, such as 1m',
      durationMs('--step', 1_000, 365 * dayMs),
    )
    .option('--aggregation <how>', 'how values become one: mean, min, max, p95, last; sum of energy')
    .option('--by <what>', 'what becomes one series: gpu, rank, node, job or all')
    .option('--node <name>', 'only values of this node')
    .option('--user <name>', 'only values of the jobs of this user')
    .option('--project <name>', 'only values of the jobs of this project')
    .option('--superseded', 'also the rows of earlier attempts at steps that a later attempt repeats');
}

/** Whether something is asked that a summary does not show. */
function isQuestion(flags: QuestionFlags): boolean {
  const { start, end, step, aggregation, by, node, user, project, superseded } = flags;
  return [start, end, step, aggregation, by, node, user, project, superseded].some(
    (each) => each !== undefined,
  );
}

/** Whose values, and of which time. */
function scopeOf(
  { since, start, attempt, node, user, project }: QuestionFlags,
  jobId: string | null,
): Pick<MetricsQuery, 'jobId' | 'startTime' | 'attempt' | 'node' | 'user' | 'project'> {
  if (since !== undefined && start !== undefined)
    throw usageError('--since and --start both say where to begin; give one of them');
  const startTime = since === undefined ? start : `-${Math.round(since / 1_000)}`;
  return {
    ...(jobId === null ? {} : { jobId }),
    ...(startTime === undefined ? {} : { startTime }),
    ...(attempt === undefined ? {} : { attempt }),
    ...(node === undefined ? {} : { node }),
    ...(user === undefined ? {} : { user }),
    ...(project === undefined ? {} : { project }),
  };
}

/** How values become fewer. */
function shapeOf({
  step,
  aggregation,
  by,
}: QuestionFlags): Pick<MetricsQuery, 'stepMs' | 'aggregation' | 'by'> {
  return {
    ...(step === undefined ? {} : { stepMs: step }),
    ...(aggregation === undefined ? {} : { aggregation }),
    ...(by === undefined ? {} : { by }),
  };
}

function queryOf(flags: QuestionFlags, name: string, jobId: string | null): MetricsQuery {
  const { end, superseded } = flags;
  return {
    name,
    ...scopeOf(flags, jobId),
    ...shapeOf(flags),
    ...(end === undefined ? {} : { endTime: end }),
    ...(superseded === undefined ? {} : { superseded }),
  };
}

interface Question {
  readonly name: string;
  /** null: of none, or of all that the flags select. */
  readonly reference: string | null;
}

/**
 * One metric, of one job at most, where more is asked than a job's own view shows. A word that may be both is a job where another is
 * the metric.
 * @returns null: it is none
 */
export function questionOf(
  words: readonly string[],
  flags: QuestionFlags & { readonly plot?: unknown },
): Question | null {
  const isAsked = flags.follow === true || isQuestion(flags);
  const position = words.findLastIndex((word) => metricNamed(word) !== null);
  const name = words[position];
  const [reference = null, another] = words.filter((_, index) => index !== position);
  if (name === undefined) {
    if (isAsked)
      throw usageError(
        'these flags are for one metric; name it',
        `Metrics: ${[...namedMetrics.keys()].join(', ')}`,
      );
    return null;
  }
  const isOfJobs = isJobMetricName(name) || isTrainingMetricName(name);
  if (!isAsked && reference !== null && isOfJobs) return null;
  if (another !== undefined || flags.plot !== undefined) {
    if (!isAsked && isOfJobs) return null;
    throw usageError('this shows one metric, of one job at most, and draws no plot');
  }
  return { name, reference };
}

export async function answerQuestion(
  context: Context,
  session: Session,
  { name, reference }: Question,
  flags: QuestionFlags,
  options: View,
): Promise<ExitCode> {
  const { output = 'table' } = flags;
  const found = reference === null ? null : await referentOf(session.api, reference);
  if (found?.kind === 'array')
    throw usageError(`${found.id} is an array of jobs; name one of them, such as "${reference}[0]"`);
  const jobId = found?.id ?? null;
  if (flags.follow !== true)
    return answerOnce(context, session.api, queryOf(flags, name, jobId), output, options);
  if (output === 'csv') throw usageError('--follow prints text or JSON; use -o json');
  const { end, superseded, step, aggregation, by } = flags;
  if (end !== undefined || superseded !== undefined)
    throw usageError('--follow prints values as they arrive; omit --end and --superseded');
  if (step === undefined && (aggregation ?? by) !== undefined)
    throw usageError('--follow aggregates the values of a step; give --step too, such as --step 1m');
  return followMetric(context, session, { name, ...scopeOf(flags, jobId), ...shapeOf(flags) }, output);
}

async function answerOnce(
  { io: { stdout, stderr } }: Context,
  api: MusterApi,
  query: MetricsQuery,
  output: 'table' | 'json' | 'csv',
  options: View,
): Promise<ExitCode> {
  const { name, jobId } = query;
  if (output !== 'table') {
    const view = await queryAll(api, query);
    if (output === 'json') await writeJson(stdout, view);
    else await writeLines(stdout, csvOf([{ jobId: jobId ?? '', name, view }]));
    return exitCodes.ok;
  }
  const isOfOutput = isTrainingMetricName(name) && jobId !== undefined;
  const view = await api.queryMetrics(isOfOutput ? { ...query, pointsMax: chartPoints } : query);
  if (view.series.length === 0) await stderr.write(`There are no values of ${printable(name)} for that.\n`);
  else await stdout.write(`${titleOf(name, view, options)}\n\n${tableOf(view, options)}`);
  for (const note of view.origin?.notes ?? []) await stderr.write(`${printable(note)}\n`);
  return exitCodes.ok;
}

/** The name in full, its unit, and where its values come from. */
function titleOf(name: string, { unit, origin }: MetricsView, { colours }: View): string {
  const sources = (origin?.sources ?? []).map(sourceText);
  return [colours.bold(printable(origin?.name ?? name)), unit, ...sources].join('  ');
}

function sourceText({ source, fromMs, toMs }: MetricSource): string {
  return `${source} ${clockText(fromMs)} to ${clockText(toMs)}`;
}

/** A chart of single values would show nothing. */
function tableOf(view: MetricsView, options: View): string {
  const isOneEach = view.series.every(({ points }) => points.length === 1);
  if (!isOneEach) return formatMetric(view, options);
  const value: Column<MetricSeries> = {
    header: 'VALUE',
    cell: ({ points }) => valueText(points[0]?.value ?? null, view.unit),
    align: 'right',
  };
  return formatTable(view.series, [...identityColumns(view.series), value], options);
}
