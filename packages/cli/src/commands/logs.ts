import { setTimeout as sleep } from 'node:timers/promises';
import { unlessAborted } from '@muster/common/async';
import { isTerminal } from '@muster/common/states';
import type { JobView, LogPiece } from '@muster/common/views';
import { type ArrayLogFlags, showArrayLogs } from '../arrays/arrayLogs.ts';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { wholeNumberFlag } from '../flags.ts';
import { abortOnStopRequest } from '../io.ts';
import { jobOrArrayHelp, jobReferenceHelp, referentOf } from '../jobs/reference.ts';
import { detachedText, nameOf, specOf, statusText } from '../jobs/summary.ts';
import { allReported } from '../jobs/transitions.ts';
import { transitionReporter, waitForJob } from '../jobs/wait.ts';
import { jsonPrinter, type LogPrinter, textPrinter } from '../logs/printer.ts';
import { missingText, readLogs } from '../logs/read.ts';
import { type Progress, startProgress } from '../output/screen.ts';
import { bytesText } from '../output/times.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';
import { type Session, withSession } from '../session.ts';

interface LogsFlags extends QueryFlags {
  readonly follow?: boolean;
  readonly rank?: number;
  readonly attempt?: number;
  readonly tail?: number;
  readonly raw?: boolean;
}

const remove: Subcommand = {
  name: 'rm',
  summary: 'delete the stored output of a job and free its space',
  define(sub) {
    sub.argument('<job>', jobReferenceHelp);
    withQuery(sub);
    sub.addHelpText('after', '\nLater output of a running job is kept.');
  },
  run: (context: Context, reference: string, flags: QueryFlags) =>
    ask(
      context,
      flags,
      (api) => api.removeLogs(reference),
      ({ jobId, bytesFreed }) =>
        bytesFreed === 0
          ? `${jobId} had no output here\n`
          : `${jobId} no longer has output here; ${bytesText(bytesFreed)} freed\n`,
    ),
};

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('<job>', jobOrArrayHelp)
      .option(
        '-f, --follow',
        'stream the output until the job has ended; Ctrl-C stops the stream, not the job',
      )
      .option('--rank <rank>', 'only this node rank', wholeNumberFlag('--rank', 0, 1023))
      .option(
        '--attempt <number>',
        'this attempt; default: the newest',
        wholeNumberFlag('--attempt', 1, 1_000_000),
      )
      .option(
        '--tail <lines>',
        'only the last lines of each rank',
        wholeNumberFlag('--tail', 1, 1_000_000_000),
      )
      .option('--raw', 'print every byte as it is, control sequences included, also on a terminal');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nOf an array each line begins with the index of its job: job after job, with -f as the lines arrive. At most\n' +
        '32 jobs are followed at the same time.\n\n' +
        'With several ranks each line begins with its rank; the output of one rank is printed unchanged. On a terminal,\n' +
        'control sequences other than colours are escaped, because they would act on it; --raw prints them.',
    );
  },
  run: showLogs,
  subcommands: [remove],
};

function showLogs(context: Context, reference: string, flags: LogsFlags): Promise<ExitCode> {
  const { io, clock, environment } = context;
  return withSession(context, flags, async (session) => {
    const found = await referentOf(session.api, reference);
    if (found.kind === 'array') return showArrayLogs(context, session, found, arrayFlagsOf(flags));
    const job = await session.api.getJob(found.id);
    const stop = abortOnStopRequest(io);
    const progress = startProgress(io.stderr, clock);
    const printer = printerFor(job, flags, context);
    const follow = flags.follow === true;
    let shown: number | null = null;
    let missing: readonly LogPiece[] | null = null;
    if (follow && job.attempts.length === 0) progress.show(statusText(job));
    const read = new AbortController();
    // One attempt alone ends with itself, and a program that reads JSON asks for the events.
    const showsProgress = follow && flags.attempt === undefined && flags.output !== 'json';
    const written =
      showsProgress && !isTerminal(job.state)
        ? printWhile(context, session, job, progress, read.signal)
        : null;
    try {
      const selection = { jobId: job.id, follow, ...selectionOf(flags) };
      missing = await unlessAborted(stop.signal, () =>
        readLogs(session, selection, {
          printer,
          onPiece({ attempt }) {
            progress.clear();
            // On stderr, so that stdout holds nothing but output of the job.
            if (shown !== null && attempt !== shown) void io.stderr.write(`--- attempt ${attempt} ---\n`);
            shown = attempt;
          },
          onAway: ({ message }) => progress.show(`${message}; reconnecting`),
          abort: stop.signal,
        }),
      );
    } finally {
      read.abort();
      await written;
      progress.end();
      stop.dispose();
    }
    if (stop.signal.aborted) {
      await io.stderr.write(
        `${detachedText(job.id, await stateNow(session, job.id))} Reattach: ${environment.programName} logs -f ${job.id}\n`,
      );
      return exitCodes.interrupted;
    }
    await io.stderr.write(missingText(missing ?? [], job.id, environment.programName));
    if (shown === null && job.attempts.length === 0) {
      await io.stderr.write(`${nameOf(job)} has no output yet. ${statusText(job)}\n`);
    }
    return exitCodes.ok;
  });
}

/** Somebody who has pressed Ctrl-C waits for no coordinator that is away. */
const stateWaitMs = 1_000;

/** @returns null: it cannot be determined now */
async function stateNow({ api }: Session, jobId: string): Promise<JobView['state'] | null> {
  const over = new AbortController();
  const waited = sleep(stateWaitMs, null, { signal: over.signal }).catch(() => null);
  const asked = api.getJob(jobId).then(
    ({ state }) => state,
    () => null,
  );
  try {
    return await Promise.race([asked, waited]);
  } finally {
    over.abort();
  }
}

function selectionOf({ rank, attempt, tail }: LogsFlags) {
  return {
    ...(rank === undefined ? {} : { nodeRank: rank }),
    ...(attempt === undefined ? {} : { attempt }),
    ...(tail === undefined ? {} : { tailLines: tail }),
  };
}

function arrayFlagsOf(flags: LogsFlags): ArrayLogFlags {
  const { follow = false, raw = false, output } = flags;
  return { follow, raw, json: output === 'json', ...selectionOf(flags) };
}

/** Tells what becomes of the job between its lines. It is a help to the reader of its output, and no reason to end. */
async function printWhile(
  context: Context,
  session: Session,
  job: JobView,
  progress: Progress,
  abort: AbortSignal,
): Promise<void> {
  const onChange = transitionReporter(context, progress, allReported(job));
  await waitForJob(session, job.id, { onChange, onAway() {}, abort }).catch(() => {});
}

function printerFor(job: JobView, flags: LogsFlags, context: Context): LogPrinter {
  if (flags.output === 'json') return jsonPrinter(context.io.stdout, context.clock);
  const oneRank = flags.rank !== undefined || specOf(job).resources.nodes === 1;
  return textPrinter(oneRank, context, { raw: flags.raw === true });
}
