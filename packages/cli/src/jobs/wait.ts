/** Waiting for a job to end, across restarts of the coordinator, and reporting on stderr what becomes of it. */
import { unlessAborted } from '@muster/common/async';
import { MusterError } from '@muster/common/errors';
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { resetColours } from '../logs/terminalFilter.ts';
import { coloursFor } from '../output/colours.ts';
import type { Progress } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import { outagePatienceMs, type Session } from '../session.ts';
import { type Reported, transitions } from './transitions.ts';

/** Why a job waits changes without an event. */
const pendingRefreshMs = 2_000;

export interface WaitOptions {
  /** The job as it is now, at every change. */
  onChange(job: JobView): void;
  onAway(error: MusterError): void;
  readonly abort: AbortSignal;
}

/** @returns the ended job, or null when aborted before */
export async function waitForJob(
  session: Session,
  jobId: string,
  { onChange, onAway, abort }: WaitOptions,
): Promise<JobView | null> {
  const look = async (api: MusterApi) => {
    const job = await api.getJob(jobId);
    onChange(job);
    return job;
  };
  return unlessAborted(abort, () =>
    session.retrying(
      async (api, alive) => {
        // The position is taken before the first look: whatever changes in between shows up as an event after it.
        const { lastEventSeq } = await api.getCluster();
        alive();
        let job = await look(api);
        const refresh = setInterval(() => {
          // A failure here needs no message: the watch below notices it as well.
          if (job.state === 'queued') void look(api).catch(() => {});
        }, pendingRefreshMs);
        const done = new AbortController();
        try {
          if (isTerminal(job.state)) return job;
          const request = { sinceSeq: lastEventSeq, follow: true, subject: job.id };
          for await (const _event of api.watchEvents(request, AbortSignal.any([abort, done.signal]))) {
            alive();
            job = await look(api);
            if (isTerminal(job.state)) return job;
          }
        } finally {
          clearInterval(refresh);
          done.abort();
        }
        abort.throwIfAborted();
        throw new MusterError('unavailable', 'the coordinator ended the watch');
      },
      { patienceMs: outagePatienceMs, onAway, abort },
    ),
  );
}

/** @returns to be called with the job at each look */
export function transitionReporter(
  { io, environment }: Context,
  progress: Progress,
  from: Reported,
): (job: JobView) => void {
  const { dim } = coloursFor(io.stderr, environment);
  // Output of one rank may have left a colour switched on, or text that nobody sees.
  const reset = io.stdout.isTerminal && io.stderr.isTerminal ? resetColours : '';
  let known = from;
  return (job) => {
    const { lines, reported } = transitions(job, known);
    known = reported;
    if (lines.length === 0) return;
    progress.clear();
    // After stderr is closed nothing more is printed there; the command itself continues.
    const text = lines.map((line) => `${reset}${dim(`— ${printable(line)} —`)}\n`).join('');
    void io.stderr.write(text).catch(() => {});
  };
}
