import { isSimulatedUuid } from '@muster/common/hardware';
import { closest } from '@muster/common/spec/suggest';
import { isTerminal } from '@muster/common/states';
import { isJobMetricName, jobMetrics, type MetricsView } from '@muster/common/telemetry';
import { isTrainingMetricName, trainingMetrics } from '@muster/common/training';
import type { JobView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { durationMs, type OutputFlags, wholeNumber, withOutput } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { nameOf, specOf } from '../jobs/summary.ts';
import { formatAllMetrics, formatMetric, type MetricName } from '../metrics/metricsText.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { withSession } from '../session.ts';

interface MetricsFlags extends ConnectionFlags, OutputFlags {
  readonly since?: number;
  readonly attempt?: number;
}

const trainingNames = Object.keys(trainingMetrics).filter(isTrainingMetricName);
const gpuNames = Object.keys(jobMetrics).filter(isJobMetricName);
const names: readonly MetricName[] = [...trainingNames, ...gpuNames];
const dayMs = 24 * 60 * 60 * 1_000;

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('<job>', jobReferenceHelp)
      .argument('[metric]', 'metric name; default: summary of all')
      .option(
        '--since <duration>',
        'only the last DURATION, such as 30m; default: everything kept, a few hours',
        durationMs('--since', 1_000, 365 * dayMs),
      )
      .option(
        '--attempt <number>',
        'only this attempt; default: all',
        wholeNumber('--attempt', 1, 1_000_000),
      );
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      `\nFrom its output: ${trainingNames.join(', ')}\nOf its GPUs: ${gpuNames.join(', ')}\n\n` +
        'GPU readings cover 10 seconds: the mean; for memory and temperature the maximum; for energy the consumption.',
    );
  },
  run: showMetrics,
};

async function showMetrics(
  context: Context,
  reference: string,
  typedName: string | undefined,
  flags: MetricsFlags,
): Promise<ExitCode> {
  const { io, environment } = context;
  const name = typedName === undefined ? null : metricNamed(typedName);
  const { job, views } = await withSession(context, flags, async ({ api }) => {
    const found = await api.getJob(reference);
    return { job: found, views: await query(api, found.id, name === null ? names : [name], flags) };
  });
  const only = name === null ? null : (views.get(name) ?? null);
  if (flags.output === 'json') {
    await writeJson(io.stdout, only ?? Object.fromEntries(views));
    return exitCodes.ok;
  }
  const isEmpty = [...views.values()].every(({ series }) =>
    series.every(({ points }) => points.length === 0),
  );
  if (isEmpty) {
    await io.stderr.write(`${printable(noReadingsText(job, flags, environment.programName))}\n`);
    return exitCodes.ok;
  }
  const colours = coloursFor(io.stdout, environment);
  const options = { width: io.stdout.columns(), colours, unicode: environment.unicode };
  const isSimulated = [...views.values()].some(({ series }) =>
    series.some(({ gpuUuid }) => isSimulatedUuid(gpuUuid)),
  );
  const about = [job.id, ...(name === null ? [] : [name]), ...(isSimulated ? ['simulated GPUs'] : [])];
  const title = `${colours.bold(nameOf(job))}  ${about.join('  ')}\n\n`;
  const body = only === null ? formatAllMetrics(views, options) : formatMetric(only, options);
  await io.stdout.write(title + body);
  return exitCodes.ok;
}

function metricNamed(typed: string): MetricName {
  if (isJobMetricName(typed) || isTrainingMetricName(typed)) return typed;
  const meant = closest(typed, names);
  throw usageError(
    `there is no metric "${typed}"`,
    ...(meant === null ? [] : [`Did you mean ${meant}?`]),
    `Metrics: ${names.join(', ')}`,
  );
}

async function query(
  api: MusterApi,
  jobId: string,
  wanted: readonly MetricName[],
  { since, attempt }: MetricsFlags,
): Promise<ReadonlyMap<MetricName, MetricsView>> {
  const range = {
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(attempt === undefined ? {} : { attempt }),
  };
  const views = await Promise.all(wanted.map((name) => api.queryMetrics({ jobId, name, ...range })));
  return new Map(wanted.flatMap((name, index) => (views[index] === undefined ? [] : [[name, views[index]]])));
}

function noReadingsText(job: JobView, { since, attempt }: MetricsFlags, programName: string): string {
  const of = `No readings of ${nameOf(job)}`;
  if (job.attempts.length === 0) return `${of}: it has not run yet.`;
  if (attempt !== undefined && !job.attempts.some(({ number }) => number === attempt)) {
    return `${of}: it has no attempt ${attempt}.`;
  }
  if (specOf(job).resources.gpus === 0 && job.training === null)
    return `${of}: it has no GPUs, and its output tells of no metrics.`;
  if (isTerminal(job.state)) {
    return `${of} are kept; \`${programName} job ${job.id}\` shows what was noted at its end.`;
  }
  return since === undefined ? `${of} yet.` : `${of} in the last ${durationText(since)}.`;
}
