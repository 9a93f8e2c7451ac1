import { MusterError } from '@muster/common/errors';
import { isSimulatedUuid } from '@muster/common/hardware';
import { type MetricSubject, namedMetrics } from '@muster/common/metricNames';
import { closest } from '@muster/common/spec/suggest';
import { isJobMetricName, type JobMetricName, jobMetrics, type MetricsView } from '@muster/common/telemetry';
import { isTrainingMetricName, type TrainingSummary, trainingMetricNames } from '@muster/common/training';
import type { JobView } from '@muster/common/views';
import type { MusterApi, TrainingSummaries } from '@muster/common/wire/client';
import type { Command } from 'commander';
import { inParallel } from '../arrays/inParallel.ts';
import { arrayJobIds, arrayJobs, type Choice, type ChosenJobs, chosenFor } from '../arrays/members.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { durationMs, wholeNumberFlag } from '../flags.ts';
import { type ArrayReferent, jobOrArrayHelp, referentOf } from '../jobs/reference.ts';
import { nameOf, specOf } from '../jobs/summary.ts';
import { noReadingsText } from '../metricQuestion/absence.ts';
import { answerQuestion, type QuestionFlags, questionOf, withQuestion } from '../metricQuestion/question.ts';
import { exportMetrics } from '../metrics/exportMetrics.ts';
import { formatGpuMetrics, formatMetric, type MetricName } from '../metrics/metricsText.ts';
import { curveOf, drawPlot, keyOf, type PlotOptions } from '../metrics/plot.ts';
import { formatComparison, formatTraining, type RowsKept, trainingNotes } from '../metrics/trainingTable.ts';
import { startProgress } from '../output/screen.ts';
import type { View } from '../output/table.ts';
import { printable } from '../output/text.ts';
import { viewOf } from '../query.ts';
import { withSession } from '../session.ts';

interface MetricsFlags extends ConnectionFlags, QuestionFlags {
  /** The name of a metric, a job, or true. */
  readonly plot?: string | true;
  readonly ascii?: true;
  readonly output?: 'table' | 'json' | 'csv';
}

const gpuNames = Object.keys(jobMetrics).filter(isJobMetricName);
const names: readonly MetricName[] = [...trainingMetricNames, ...gpuNames];
const namesOf = (subject: MetricSubject) =>
  [...namedMetrics.values()]
    .flatMap((metric) => (metric.subject === subject ? [metric.name] : []))
    .join(', ');
const dayMs = 24 * 60 * 60 * 1_000;
/** More curves cannot be distinguished. */
const comparedMax = 26;
/** Of an array: more lines are for a program, which has `-o csv`. */
const rowsMax = 1_000;
const callsAtOnce = 8;
/** Of a comparison: more notes hide the table. */
const notedMax = 10;
/** Of a chart that takes a line: more than it has columns. */
const chartPoints = 2_000;
/** Where the output is no terminal. */
const plotWidth = 80;
const plotHeight = 20;
const plotHeightMax = 30;

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('[job]', `${jobOrArrayHelp}; default: the jobs, nodes or cluster that the metric is about`)
      .argument('[metric...]', 'metric name; further jobs are compared; default: summary of all metrics')
      .option('--plot [metric]', 'draw the curve; default: train_loss')
      .option('--ascii', 'draw with ASCII characters; default: as the locale allows')
      .option(
        '--since <duration>',
        'only the last DURATION, such as 30m; default: everything kept',
        durationMs('--since', 1_000, 365 * dayMs),
      )
      .option(
        '--attempt <number>',
        'only this attempt; default: all, a later one in place of the steps that it repeats',
        wholeNumberFlag('--attempt', 1, 1_000_000),
      );
    withConnection(withExports(withQuestion(sub)));
    sub.addHelpText(
      'after',
      `\nFrom its output: ${trainingMetricNames.join(', ')}\nOf its GPUs: ${gpuNames.join(', ')}\n` +
        `Of nodes: ${namesOf('host')}\nOf the cluster: ${namesOf('cluster')}\n\n` +
        'Metrics from the output are kept row by row with the job; those of GPUs for some hours.\n' +
        'GPU readings cover 10 seconds: the mean; for memory and temperature the maximum; for energy the consumption.',
    );
  },
  run: showMetrics,
};

function withExports(sub: Command): Command {
  const option = sub
    .createOption('-o, --output <format>', "json: the API's JSON, for programs; csv: a line per point")
    .choices(['table', 'json', 'csv']);
  return sub.addOption(option);
}

/** What was asked for. */
interface Asked {
  readonly references: readonly string[];
  /** As typed. */
  readonly name: MetricName | null;
  /** The one to show; null: all of them in short. */
  readonly metric: MetricName | null;
  readonly isPlot: boolean;
}

function showMetrics(
  context: Context,
  first: string | undefined,
  more: readonly string[],
  flags: MetricsFlags,
): Promise<ExitCode> {
  const words = [...(first === undefined ? [] : [first]), ...more];
  const question = questionOf(words, flags);
  if (question !== null)
    return withSession(context, flags, (session) =>
      answerQuestion(context, session, question, flags, optionsOf(context, flags)),
    );
  const [reference, ...others] = words;
  if (reference === undefined)
    throw usageError(
      'name a job, or a metric',
      `${context.environment.programName} metrics JOB`,
      `${context.environment.programName} metrics gpus_free`,
    );
  return showJobs(context, askedOf(reference, others, flags), flags);
}

async function explainAbsence({ context, flags }: Seen, job: JobView): Promise<ExitCode> {
  const text = noReadingsText(job, flags, context.environment.programName);
  await context.io.stderr.write(`${printable(text)}\n`);
  return exitCodes.ok;
}

async function showJobs(context: Context, asked: Asked, flags: MetricsFlags): Promise<ExitCode> {
  return withSession(context, flags, async ({ api }) => {
    const named: Named[] = [];
    for (const each of asked.references) named.push(await namedBy(api, each, asked));
    const seen: Seen = { context, flags, api };
    if (flags.output === 'json' || flags.output === 'csv') {
      const shown = asked.metric === null ? names : [asked.metric];
      const ids: string[] = [];
      for (const each of named) {
        if (each.kind === 'job') ids.push(each.job.id);
        else for (const id of await arrayJobIds(api, each.id)) ids.push(id);
      }
      const isOneMetric = asked.metric !== null;
      await exportMetrics(
        context.io.stdout,
        api,
        { ids, names: shown, isOneMetric, range: rangeOf(flags) },
        flags.output,
      );
      return exitCodes.ok;
    }
    const choice = { metric: asked.metric ?? 'train_loss', max: asked.isPlot ? comparedMax : rowsMax };
    const chosen = await chosenOf(api, named, choice);
    const [job] = chosen.jobs;
    if (job === undefined) return exitCodes.ok;
    if (asked.isPlot || chosen.total > 1) return compare(seen, chosen, choice, asked.isPlot);
    return asked.metric === null ? showAll(seen, job) : showOne(seen, job, asked.metric);
  });
}

function askedOf(reference: string, more: readonly string[], flags: MetricsFlags): Asked {
  const isMetric = (word: string): word is MetricName => isJobMetricName(word) || isTrainingMetricName(word);
  // `--plot` takes a word that follows it, which may be a job.
  const words = typeof flags.plot === 'string' ? [...more, flags.plot] : more;
  const metrics = words.filter(isMetric);
  const others = words.filter((word) => !isMetric(word));
  const isPlot = flags.plot !== undefined;
  const [name = null, second] = metrics;
  if (second !== undefined)
    throw usageError(`one metric at a time: got ${metrics.join(' and ')}`, 'Call it once for each.');
  const [meant] = others;
  if (meant !== undefined && name === null && others.length === 1 && !isPlot) {
    const near = closest(meant, names);
    if (near !== null || meant.includes('_')) throw unknownMetric(meant, near);
  }
  const references = [reference, ...others];
  if (references.length > comparedMax)
    throw usageError(
      `${references.length} jobs are more than can be compared at once: ${comparedMax} at most`,
    );
  const needsName = isPlot || (references.length > 1 && flags.output === undefined);
  return { references, name, metric: name ?? (needsName ? 'train_loss' : null), isPlot };
}

type Named = ArrayReferent | { readonly kind: 'job'; readonly job: JobView };

async function chosenOf(api: MusterApi, named: readonly Named[], choice: Choice): Promise<ChosenJobs> {
  const jobs: JobView[] = [];
  let total = 0;
  for (const each of named) {
    const found =
      each.kind === 'array' ? await arrayJobs(api, each.id, choice) : { jobs: [each.job], total: 1 };
    jobs.push(...found.jobs);
    total += found.total;
  }
  return { jobs, total };
}

/** The second word of two is rather a metric that is misspelt than a job that is not there. */
async function namedBy(api: MusterApi, reference: string, { references, name }: Asked): Promise<Named> {
  try {
    const found = await referentOf(api, reference);
    return found.kind === 'array' ? found : { kind: 'job', job: await api.getJob(found.id) };
  } catch (error) {
    const mayBeMetric = references.length === 2 && reference === references[1] && name === null;
    if (mayBeMetric && error instanceof MusterError && error.code === 'not_found')
      throw unknownMetric(reference, closest(reference, names));
    throw error;
  }
}

function unknownMetric(typed: string, meant: string | null): Error {
  return usageError(
    `there is no metric "${typed}"`,
    ...(meant === null ? [] : [`Did you mean ${meant}?`]),
    `Metrics: ${names.join(', ')}`,
  );
}

interface Seen {
  readonly context: Context;
  readonly flags: MetricsFlags;
  readonly api: MusterApi;
}

function rangeOf({ since, attempt }: MetricsFlags): { readonly sinceMs?: number; readonly attempt?: number } {
  return {
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(attempt === undefined ? {} : { attempt }),
  };
}

function optionsOf(context: Context, flags: MetricsFlags): View {
  const view = viewOf(context);
  return { ...view, unicode: view.unicode && flags.ascii === undefined };
}

// ---- One job

async function showAll({ context, flags, api }: Seen, job: JobView): Promise<ExitCode> {
  const range = { jobId: job.id, ...rangeOf(flags) };
  const training = await api.summarizeTraining(range);
  const views = new Map<JobMetricName, MetricsView>();
  if (specOf(job).resources.gpus > 0)
    for (const name of gpuNames) views.set(name, await api.queryMetrics({ ...range, name }));
  const hasGpus = [...views.values()].some(hasPoints);
  if (training.metrics.length === 0 && !hasGpus) return explainAbsence({ context, flags, api }, job);
  const options = optionsOf(context, flags);
  const tables = [
    ...(training.metrics.length === 0 ? [] : [formatTraining(training.metrics, options)]),
    ...(hasGpus ? [formatGpuMetrics(views, options)] : []),
  ];
  const { stdout, stderr } = context.io;
  await stdout.write(titleOf(options, job, [...views.values()]) + tables.join('\n'));
  await stderr.write(notesText(job, training.metrics, training));
  return exitCodes.ok;
}

async function showOne({ context, flags, api }: Seen, job: JobView, name: MetricName): Promise<ExitCode> {
  const query = { jobId: job.id, name, ...rangeOf(flags) };
  const view = await api.queryMetrics(
    isTrainingMetricName(name) ? { ...query, pointsMax: chartPoints } : query,
  );
  if (!hasPoints(view)) return explainAbsence({ context, flags, api }, job);
  const options = optionsOf(context, flags);
  await context.io.stdout.write(titleOf(options, job, [view], name) + formatMetric(view, options));
  if (isTrainingMetricName(name)) {
    const summaries = await api.summarizeTraining({ jobId: job.id, ...rangeOf(flags) });
    const own = summaries.metrics.filter((each) => each.name === name);
    await context.io.stderr.write(notesText(job, own, summaries));
  }
  return exitCodes.ok;
}

function hasPoints({ series }: MetricsView): boolean {
  return series.some(({ points }) => points.length > 0);
}

function titleOf(
  { colours }: View,
  job: JobView,
  views: readonly MetricsView[],
  name: MetricName | null = null,
): string {
  const isSimulated = views.some(({ series }) => series.some(({ gpuUuid }) => isSimulatedUuid(gpuUuid)));
  const about = [job.id, ...(name === null ? [] : [name]), ...(isSimulated ? ['simulated GPUs'] : [])];
  return `${colours.bold(printable(nameOf(job)))}  ${about.join('  ')}\n\n`;
}

function notesText(job: JobView, metrics: readonly TrainingSummary[], kept: RowsKept): string {
  const notes = trainingNotes(nameOf(job), metrics, kept);
  return notes.map((note) => `${printable(note)}\n`).join('');
}

// ---- Curves

const noSummaries: TrainingSummaries = { metrics: [], thinned: false, unreadBytes: 0 };

async function compare(
  seen: Seen,
  given: ChosenJobs,
  choice: Choice & { readonly metric: MetricName },
  isPlot: boolean,
): Promise<ExitCode> {
  const { context, flags, api } = seen;
  const { stdout, stderr } = context.io;
  const { metric } = choice;
  const { jobs, note } = chosenFor(given, choice, isPlot ? 'drawn' : 'shown');
  const options = optionsOf(context, flags);
  const size = plotSize(context, jobs.length, options);
  const isTraining = isTrainingMetricName(metric);
  const needsPoints = isPlot || jobs.length === 1 || !isTraining;
  const read = new Map<string, Omit<Compared, 'job'>>();
  const progress = startProgress(stderr, context.clock);
  try {
    await inParallel(jobs, callsAtOnce, async ({ id }) => {
      const range = { jobId: id, ...rangeOf(flags) };
      const pointsMax = isTraining ? { pointsMax: 4 * size.width } : {};
      const view = needsPoints ? await api.queryMetrics({ ...range, name: metric, ...pointsMax }) : null;
      const summaries = isTraining ? await api.summarizeTraining(range) : noSummaries;
      read.set(id, { view, summaries });
      progress.show(`metrics of ${read.size} of ${jobs.length} jobs read`);
    });
  } finally {
    progress.end();
  }
  const shown = jobs.flatMap((job) => {
    const found = read.get(job.id);
    return found === undefined ? [] : [{ job, ...found }];
  });
  const summaryOf = ({ metrics }: TrainingSummaries) => metrics.find((each) => each.name === metric) ?? null;
  const hasValues = ({ view, summaries }: Compared) =>
    view === null ? summaryOf(summaries) !== null : hasPoints(view);
  const drawn = shown.filter(hasValues);
  const [first] = drawn;
  if (first === undefined) {
    if (jobs.length > notedMax) await stderr.write(`None of the ${jobs.length} jobs has ${metric}.\n`);
    else for (const job of jobs) await explainAbsence(seen, job);
    return exitCodes.ok;
  }
  const isOne = jobs.length === 1;
  const title = isOne
    ? titleOf(options, first.job, first.view === null ? [] : [first.view], metric)
    : `${options.colours.bold(metric)}\n\n`;
  const lines = isPlot
    ? drawPlot(
        drawn.map(({ view }) => curveOf(view?.series ?? [])),
        first.view?.unit ?? '',
        size,
      )
    : [];
  const picture = lines.map((line) => `${line.trimEnd()}\n`).join('');
  const table =
    isOne && !isTrainingMetricName(metric)
      ? ''
      : isOne
        ? formatTraining(
            [summaryOf(first.summaries)].filter((each) => each !== null),
            options,
          )
        : formatComparison(
            shown.map((each) => ({
              key: isPlot && hasValues(each) ? keyOf(drawn.indexOf(each), drawn.length, size) : '',
              id: each.job.id,
              name: nameOf(each.job),
              state: each.job.state,
              summary: summaryOf(each.summaries),
            })),
            options,
          );
  await stdout.write(title + [picture, table].filter((part) => part !== '').join('\n'));
  const notes = shown.flatMap(({ job, summaries }) => {
    const summary = summaryOf(summaries);
    return notesText(job, summary === null ? [] : [summary], summaries) || [];
  });
  for (const text of notes.slice(0, notedMax)) await stderr.write(text);
  if (notes.length > notedMax) await stderr.write(`… and notes on ${notes.length - notedMax} more jobs\n`);
  if (note !== null) await stderr.write(`${note}\n`);
  return exitCodes.ok;
}

interface Compared {
  readonly job: JobView;
  /** null: a table needs no points. */
  readonly view: MetricsView | null;
  readonly summaries: TrainingSummaries;
}

/** What is left of the terminal beside title, table and prompt. */
function plotSize({ io }: Context, jobs: number, { colours, unicode, width }: View): PlotOptions {
  const rows = io.stdout.rows();
  const height = rows === null ? plotHeight : Math.max(8, Math.min(plotHeightMax, rows - jobs - 6));
  return { width: Math.max(30, width ?? plotWidth), height, colours, unicode };
}
