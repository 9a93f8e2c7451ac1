/** Staying with a whole array until its last job has ended: counts by state, and a line for each failure. */
import { setTimeout as sleep } from 'node:timers/promises';
import { unlessAborted } from '@muster/common/async';
import { isTerminal, jobStates, terminalJobStates } from '@muster/common/states';
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { exitCodes } from '../exitCodes.ts';
import { type Attendance, attend, awayText, detached } from '../jobs/attend.ts';
import { pagesOfJobs } from '../jobs/pages.ts';
import { problemsOf } from '../jobs/transitions.ts';
import { coloursFor } from '../output/colours.ts';
import type { Progress } from '../output/screen.ts';
import { count, printable } from '../output/text.ts';
import { outagePatienceMs, type Session } from '../session.ts';
import { countsOf, countsText, type StateCounts } from './arraySummary.ts';
import { type Member, memberOf, newestByIndex, readMembers, unreadOf } from './members.ts';

/** In a pipe a line for each change would be a line for each job. */
const countsEveryMs = 5_000;
/** Of one look. More lines at once are read by nobody. */
const failureLinesMax = 20;

const unfinishedStates = jobStates.filter((state) => !isTerminal(state));
const badStates = terminalJobStates.filter((state) => state !== 'succeeded');

export interface AttendedArray {
  readonly id: string;
  readonly size: number;
}

/**
 * @param replaced jobs that were requeued: the jobs in their places are waited for instead
 * @returns exit code 0 when all jobs have succeeded, 1 when one has not
 */
export function waitForArrayAndReport(
  context: Context,
  session: Session,
  { id, size }: AttendedArray,
  replaced: ReadonlySet<string> = new Set(),
): Promise<Attendance> {
  return attend(context, async (progress, abort) => {
    const printFailures = failureReporter(context, progress, id);
    const printCounts = countsPrinter(context, progress);
    const last = await unlessAborted(abort, async () => {
      for (;;) {
        const { seen, restMs } = await lookPatiently(context, session, { progress, abort }, (api) =>
          lookAtArray(api, { id, size }, replaced, context.clock.wallMs()),
        );
        printFailures(seen.failures);
        printCounts(seen.counts);
        const isOver = unfinishedStates.every((state) => seen.counts[state] === 0);
        if (isOver && seen.counts.succeeded === size) return seen.counts;
        // A job that was requeued meanwhile and succeeded is seen among all jobs only.
        if (isOver) {
          const all = await lookPatiently(context, session, { progress, abort }, (api) =>
            readMembers(api, { id, size }, context.clock.wallMs()),
          );
          return countsOf(all.seen);
        }
        await sleep(restMs, undefined, { signal: abort });
      }
    });
    progress.end();
    return last === null ? detached(context, id, null) : ended(context, id, last);
  });
}

interface ArrayLook {
  readonly counts: StateCounts;
  /** What went wrong until now, by keys that stay the same. */
  readonly failures: ReadonlyMap<string, string>;
}

/** Jobs that succeeded, most of them in the end, are not read: they are those that are neither unfinished nor failed. */
async function lookAtArray(
  api: MusterApi,
  { id: arrayId, size }: AttendedArray,
  replaced: ReadonlySet<string>,
  nowMs: number,
): Promise<ArrayLook> {
  const read: Member[] = [];
  const failures = new Map<string, string>();
  let notStored: number | undefined;
  // The unfinished first: a job that ends in between is then in both lists, and never in none.
  for (const states of [unfinishedStates, badStates]) {
    for await (const page of pagesOfJobs(api, { arrayId, states }, Number.POSITIVE_INFINITY)) {
      notStored ??= page.notStored;
      for (const job of page.jobs) {
        if (replaced.has(job.id)) continue;
        read.push(memberOf(job, nowMs));
        for (const { key, text } of problemsOf(job)) failures.set(`${job.id}.${key}`, text);
      }
    }
  }
  const members = newestByIndex(read);
  const unread = unreadOf(size, members, notStored);
  const counts = countsOf({ members, notStored: unread });
  const others = Math.max(0, size - members.length - unread);
  return { failures, counts: { ...counts, succeeded: counts.succeeded + others } };
}

/** @returns to be called with what went wrong until now, at each look; `silently`: it is known to the reader */
export function failureReporter(
  { io, environment }: Context,
  progress: Progress,
  arrayId: string,
): (failures: ReadonlyMap<string, string>, how?: { readonly silently: boolean }) => void {
  const { dim } = coloursFor(io.stderr, environment);
  const reported = new Set<string>();
  return (failures, { silently } = { silently: false }) => {
    const fresh = [...failures].filter(([key]) => !reported.has(key));
    for (const [key] of fresh) reported.add(key);
    if (silently || fresh.length === 0) return;
    const lines = fresh.slice(0, failureLinesMax).map(([, text]) => printable(text));
    const more = fresh.length - lines.length;
    if (more > 0) lines.push(`and ${more} more; ${environment.programName} explain ${arrayId}`);
    progress.clear();
    void io.stderr.write(lines.map((line) => `${dim(`— ${line} —`)}\n`).join('')).catch(() => {});
  };
}

/** On a terminal one line that is rewritten; elsewhere a line from time to time. */
function countsPrinter({ io, clock }: Context, progress: Progress): (counts: StateCounts) => void {
  let shown = '';
  let shownAtMs = Number.NEGATIVE_INFINITY;
  return (counts) => {
    const text = countsText(counts);
    progress.show(text);
    const nowMs = clock.monotonicMs();
    if (io.stderr.isTerminal || text === shown || nowMs - shownAtMs < countsEveryMs) return;
    shown = text;
    shownAtMs = nowMs;
    void io.stderr.write(`— ${text} —\n`).catch(() => {});
  };
}

async function ended(context: Context, arrayId: string, counts: StateCounts): Promise<Attendance> {
  const { stderr } = context.io;
  // Retention may have removed jobs meanwhile; what became of them nobody knows.
  const known = terminalJobStates.reduce((sum, state) => sum + counts[state], 0);
  if (counts.succeeded === known) {
    await stderr.write(`all ${count(known, 'job')} succeeded\n`);
    return { exitCode: exitCodes.ok, job: null };
  }
  const { programName } = context.environment;
  await stderr.write(
    `${known - counts.succeeded} of ${count(known, 'job')} did not succeed: ${countsText(counts)}\n` +
      `More with: ${programName} explain ${arrayId}\n`,
  );
  return { exitCode: exitCodes.jobFailed, job: null };
}

/** A look at a large array is work for the coordinator: waiting this many times as long bounds it to a fifth of the time. */
const restsPerLook = 4;
const restMsMin = 500;

interface Look<T> {
  readonly seen: T;
  /** How long to wait before the next look. */
  readonly restMs: number;
}

/**
 * One look, across restarts of the coordinator.
 * @throws {MusterError} of the coordinator, or when it was away for too long
 */
export async function lookPatiently<T>(
  { clock }: Context,
  session: Session,
  { progress, abort }: { readonly progress: Progress; readonly abort: AbortSignal },
  read: (api: MusterApi) => Promise<T>,
): Promise<Look<T>> {
  const beganMs = clock.monotonicMs();
  const onAway = (error: Error) => progress.show(awayText(error));
  const seen = await session.retrying(read, { patienceMs: outagePatienceMs, onAway, abort });
  return { seen, restMs: Math.max(restMsMin, restsPerLook * (clock.monotonicMs() - beganMs)) };
}
