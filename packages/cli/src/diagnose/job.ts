/** The diagnosis of an attempt of a job: the output of all its ranks, and what Muster itself has recorded. */

import type { AttemptView, JobView } from '@muster/common/views';
import { LogDiagnosis } from '@muster/diagnosis/diagnose';
import type { Diagnosis } from '@muster/diagnosis/model';
import type { ConnectionFlags } from '../connection.ts';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { nameOf, newestAttempt, statusText } from '../jobs/summary.ts';
import type { LogPrinter } from '../logs/printer.ts';
import { missingText, readLogs } from '../logs/read.ts';
import { startProgress } from '../output/screen.ts';
import { withSession } from '../session.ts';
import { mergeRanks } from './merge.ts';

interface JobDiagnosis {
  readonly diagnosis: Diagnosis;
  /** Which attempt of which job it is of. */
  readonly title: string;
}

export function diagnoseJob(
  reference: string,
  flags: ConnectionFlags & { readonly attempt?: number },
  context: Context,
): Promise<JobDiagnosis> {
  const { io, clock, environment } = context;
  return withSession(context, flags, async (session) => {
    const job = await session.api.getJob(reference);
    const attempt = attemptOf(job, flags.attempt, environment.programName);
    const logs = new Map<number, LogDiagnosis>();
    const progress = startProgress(io.stderr, clock);
    try {
      const selection = { jobId: job.id, attempt: attempt.number, follow: false };
      const missing = await readLogs(session, selection, {
        printer: printerInto(logs),
        onPiece: () => progress.clear(),
        onAway: ({ message }) => progress.show(`${message}; reconnecting`),
        abort: new AbortController().signal,
      });
      progress.clear();
      await io.stderr.write(missingText(missing, job.id, environment.programName));
    } finally {
      progress.end();
    }
    const title = `${nameOf(job)}  ${job.id}  attempt ${attempt.number}`;
    return { diagnosis: mergeRanks(logs, attempt), title };
  });
}

function attemptOf(job: JobView, wanted: number | undefined, programName: string): AttemptView {
  const newest = newestAttempt(job);
  if (newest === null) {
    throw new CliError(`${nameOf(job)} has not run yet: ${statusText(job)}`, {
      hints: [`\`${programName} explain ${job.id}\` says what it waits for.`],
    });
  }
  if (wanted === undefined) return newest;
  const found = job.attempts.find(({ number }) => number === wanted);
  if (found !== undefined) return found;
  throw new CliError(`${nameOf(job)} has no attempt ${wanted}; the newest is ${newest.number}`, {
    code: 'not_found',
  });
}

/** Takes the bytes of each rank in place of a printer. */
function printerInto(logs: Map<number, LogDiagnosis>): LogPrinter {
  return {
    async print({ nodeRank, data }) {
      const log = logs.get(nodeRank) ?? new LogDiagnosis();
      logs.set(nodeRank, log);
      log.feed(data);
    },
    async finish() {
      for (const log of logs.values()) log.end();
    },
  };
}
