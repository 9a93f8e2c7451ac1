/** Staying with a job until it ends, with progress for people and an exit code for scripts; Ctrl-C leaves it running. */
import { unlessAborted } from '@muster/common/async';
import { signSummary } from '@muster/common/signText';
import type { JobView } from '@muster/common/views';
import type { Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { abortOnStopRequest } from '../io.ts';
import { textPrinter } from '../logs/printer.ts';
import { missingText, readLogs } from '../logs/read.ts';
import { coloursFor } from '../output/colours.ts';
import { type Progress, startProgress } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import type { Session } from '../session.ts';
import { detachedText, nameOf, ranText, specOf, statusText } from './summary.ts';
import { nothingReported, type Reported } from './transitions.ts';
import { transitionReporter, waitForJob } from './wait.ts';

export interface Attendance {
  readonly exitCode: ExitCode;
  /** null when detached before its end. */
  readonly job: JobView | null;
}

/** Shows the state as it changes, in the end the result. */
export function waitAndReport(
  context: Context,
  session: Session,
  jobId: string,
  from: Reported = nothingReported,
): Promise<Attendance> {
  return attend(context, async (progress, abort) => {
    const report = transitionReporter(context, progress, from);
    let state: JobView['state'] | null = null;
    const job = await waitForJob(session, jobId, {
      onChange(now) {
        ({ state } = now);
        report(now);
        progress.show(statusText(now));
      },
      onAway: (error) => progress.show(awayText(error)),
      abort,
    });
    progress.end();
    return job === null ? detached(context, jobId, state) : ended(context, job);
  });
}

/** Shows the output live, and the result at the end. */
export function followAndReport(
  context: Context,
  session: Session,
  jobId: string,
  from: Reported = nothingReported,
): Promise<Attendance> {
  return attend(context, async (progress, abort) => {
    const report = transitionReporter(context, progress, from);
    const job = await session.api.getJob(jobId);
    let { state } = job;
    progress.show(statusText(job));
    const printer = textPrinter(specOf(job).resources.nodes === 1, context);
    let printing = false;
    const result = unlessAborted(abort, () =>
      waitForJob(session, jobId, {
        onChange(now) {
          ({ state } = now);
          report(now);
          // Between the lines of its output the state would only disturb; while the job waits there are none.
          if (!printing || now.state === 'queued') progress.show(statusText(now));
        },
        onAway: (error) => printing || progress.show(awayText(error)),
        abort,
      }),
    );
    // The output ends with the job, a moment before or after its end is known here.
    const output = unlessAborted(abort, () =>
      readLogs(
        session,
        { jobId, follow: true },
        {
          printer,
          onPiece() {
            printing = true;
            progress.clear();
          },
          onAway() {},
          abort,
        },
      ),
    );
    const [last, missing] = await Promise.all([result, output]);
    progress.end();
    await context.io.stderr.write(missingText(missing ?? [], jobId, context.environment.programName));
    return last === null ? detached(context, jobId, state) : ended(context, last);
  });
}

/** Does the work with a line of progress, until Ctrl-C. */
export async function attend(
  { io, clock }: Context,
  work: (progress: Progress, abort: AbortSignal) => Promise<Attendance>,
): Promise<Attendance> {
  const stop = abortOnStopRequest(io);
  const progress = startProgress(io.stderr, clock);
  try {
    return await work(progress, stop.signal);
  } finally {
    progress.end();
    stop.dispose();
  }
}

async function ended(context: Context, job: JobView): Promise<Attendance> {
  const { stderr } = context.io;
  const { programName } = context.environment;
  const colours = coloursFor(stderr, context.environment);
  const ran = ranText(job, context.clock.wallMs());
  const after = ran === '' ? '' : ` after ${ran}`;
  // A run whose loss is not a number may well have ended with exit code 0.
  const signs = signSummary(job);
  if (job.state === 'succeeded') {
    const but = signs.length === 0 ? '' : `; ${colours.yellow(signs.join(', '))}`;
    await stderr.write(`${nameOf(job)} ${colours.green('succeeded')}${after}${but}\n`);
    return { exitCode: exitCodes.ok, job };
  }
  const why = job.cause === null ? '' : `: ${printable(job.cause.message)}`;
  await stderr.write(`${nameOf(job)} ${colours.red(job.state)}${after}${why}\n`);
  await stderr.write(`More with: ${programName} explain ${job.id}\n`);
  return { exitCode: exitCodes.jobFailed, job };
}

/** After Ctrl-C. @param state of the job when it was last seen; null: unknown, or an array */
export async function detached(
  context: Context,
  id: string,
  state: JobView['state'] | null,
): Promise<Attendance> {
  const { programName } = context.environment;
  await context.io.stderr.write(
    `${detachedText(id, state)} Reattach: ${programName} logs -f ${id}\nStop it: ${programName} stop ${id}\n`,
  );
  return { exitCode: exitCodes.interrupted, job: null };
}

export function awayText(error: Error): string {
  return `${error.message}; reconnecting`;
}
