import { parseDurationMs } from '@muster/common/spec/duration';
import { closest } from '@muster/common/spec/suggest';
import { type JobStateKind, jobStates } from '@muster/common/states';
import { isTrainingMetricName, type TrainingMetricName, trainingMetrics } from '@muster/common/training';
import type { JobView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { collect, wholeNumberFlag } from '../flags.ts';
import { byMetric, formatJobs, jobColumns } from '../jobs/jobTable.ts';
import { collectJobs } from '../jobs/pages.ts';
import { watchJobs } from '../jobs/watchJobs.ts';
import { writeJson } from '../output/json.ts';
import { count } from '../output/text.ts';
import { type QueryFlags, viewOf, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

interface JobsFlags extends QueryFlags {
  readonly state?: readonly string[];
  readonly array?: string;
  readonly name?: string;
  readonly project?: string;
  readonly user?: string;
  readonly label?: string;
  readonly since?: string;
  readonly request?: string;
  readonly limit?: number;
  readonly all?: boolean;
  readonly metrics?: string;
  readonly columns?: readonly string[];
  readonly wide?: boolean;
  readonly watch?: boolean;
}

/** One screenful; more is for those who ask. */
const limitDefault = 20;

export const command: CommandModule = {
  define(sub) {
    sub
      .option('--state <state>', `only jobs in this state, may be repeated: ${jobStates.join(', ')}`, collect)
      .option('--array <array>', 'only the jobs of this array: its id, its name, or one of its jobs')
      .option('--name <name>', 'only jobs of this name')
      .option(
        '--limit <count>',
        `at most this many; default ${limitDefault}`,
        wholeNumberFlag('--limit', 1, 1_000_000),
      )
      .option('-a, --all', 'every job')
      .option('--project <project>', 'only jobs of this project')
      .option('--user <name>', 'only jobs that this user submitted')
      .option('--label <name=value>', 'only jobs with this label; NAME alone: whatever its value')
      .option('--since <time>', 'only jobs submitted since then: a duration such as 2h, or a date')
      .option('--request <id>', 'only jobs of this request, to find out whether it was accepted')
      .option('--metrics <metric>', 'a column of its newest value, such as train_loss; the smallest first')
      .option('--columns <names>', `columns to show: ${jobColumns.join(',')}`, columnsNamed)
      .option('--wide', 'every column, however wide')
      .option('-w, --watch', 'redraw on every change; in a pipe, a line for each change');
    withQuery(sub);
  },
  run: (context: Context, flags: JobsFlags) => listJobs(context, flags),
};

async function listJobs(context: Context, flags: JobsFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  if (flags.watch === true && flags.output === 'json')
    throw usageError('--watch and -o json exclude each other: `muster events -f -o json` follows as JSON');
  const filter = filterOf(flags, clock.wallMs());
  const limit =
    flags.all === true || flags.metrics !== undefined
      ? Number.POSITIVE_INFINITY
      : (flags.limit ?? limitDefault);
  const metric = flags.metrics === undefined ? undefined : metricNamed(flags.metrics);
  const columns = flags.wide === true ? jobColumns : flags.columns;
  const table = (jobs: readonly JobView[], width: number | null) =>
    formatJobs(jobs, { ...viewOf(context), width: flags.wide === true ? null : width, columns, metric });
  return withSession(context, flags, async (session) => {
    const read = async (api: MusterApi) => {
      const page = await collectJobs(api, { ...filter, brief: flags.output !== 'json' }, limit);
      if (metric === undefined) return page;
      // The newest are not the best, so only all of them can be put into order.
      const shownMax = flags.all === true ? undefined : flags.limit;
      return { ...page, jobs: byMetric(page.jobs, metric).slice(0, shownMax) };
    };
    const { jobs, more, notStored } = await read(session.api);
    if (flags.output === 'json') {
      await writeJson(io.stdout, { jobs, more, notStored });
      return exitCodes.ok;
    }
    if (flags.watch === true) {
      const look = (abort: AbortSignal) =>
        session.retrying(async (api) => (await read(api)).jobs, {
          patienceMs: Number.POSITIVE_INFINITY,
          onAway() {},
          abort,
        });
      await watchJobs(context, jobs, { look, table });
      return exitCodes.ok;
    }
    if (notStored > 0)
      await io.stderr.write(`${count(notStored, 'more job')} of the array are queued and being stored.\n`);
    if (jobs.length === 0) {
      const isFiltered = Object.values(filter).some((each) => typeof each === 'number' || each.length > 0);
      const advice = `No job yet. Submit one with: ${environment.programName} submit -- COMMAND`;
      await io.stderr.write(`${isFiltered ? 'No matching jobs.' : advice}\n`);
      return exitCodes.ok;
    }
    await io.stdout.write(table(jobs, io.stdout.columns()));
    if (more)
      await io.stderr.write(
        `The newest ${jobs.length}; \`${environment.programName} jobs --all\` shows every one.\n`,
      );
    return exitCodes.ok;
  });
}

function filterOf(flags: JobsFlags, nowMs: number) {
  const { array, name, project, user, label, request, since } = flags;
  const states = (flags.state ?? []).flatMap((word) => word.split(',')).map(stateNamed);
  return {
    states,
    ...(array === undefined ? {} : { arrayId: array }),
    ...(name === undefined ? {} : { name }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { user }),
    ...(label === undefined ? {} : { label }),
    ...(request === undefined ? {} : { requestId: request }),
    ...(since === undefined ? {} : { sinceMs: sinceMs(since, nowMs) }),
  };
}

/** `2h`, or a date such as 2026-11-22 or 2026-11-22T10:00, in local time. */
function sinceMs(typed: string, nowMs: number): number {
  const agoMs = parseDurationMs(typed);
  if (agoMs !== null) return nowMs - agoMs;
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(typed) ? new Date(dateOnly(typed)).getTime() : Number.NaN;
  if (!Number.isNaN(atMs)) return atMs;
  throw usageError(`--since takes a duration such as 2h, or a date such as 2026-11-22; got "${typed}"`);
}

/** A date alone would be midnight in Greenwich. */
function dateOnly(typed: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(typed) ? `${typed}T00:00` : typed;
}

function columnsNamed(typed: string): readonly string[] {
  const names = typed.split(',').map((each) => each.trim().toLowerCase());
  for (const name of names) {
    if (jobColumns.some((known) => known === name)) continue;
    const meant = closest(name, jobColumns);
    throw usageError(
      `there is no column "${name}"`,
      ...(meant === null ? [] : [`Did you mean ${meant}?`]),
      `Columns: ${jobColumns.join(', ')}`,
    );
  }
  return names;
}

function metricNamed(typed: string): TrainingMetricName {
  if (isTrainingMetricName(typed)) return typed;
  throw usageError(`there is no metric "${typed}"`, `Metrics: ${Object.keys(trainingMetrics).join(', ')}`);
}

function stateNamed(word: string): JobStateKind {
  const state = jobStates.find((known) => known === word);
  if (state !== undefined) return state;
  throw usageError(`invalid state "${word}"; --state takes ${jobStates.join(', ')}`);
}
