/** Staying with a whole array until its last job has ended: counts by state, and a line for each failure. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal, type JobStateKind, jobStates, terminalJobStates } from '@muster/common/states';
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { exitCodes } from '../exitCodes.ts';
import { type Attendance, attend, awayText, detached } from '../jobs/attend.ts';
import { pagesOfJobs } from '../jobs/pages.ts';
import { troublesOf } from '../jobs/transitions.ts';
import { outagePatienceMs, unlessAborted } from '../jobs/wait.ts';
import { coloursFor } from '../output/colours.ts';
import type { Progress } from '../output/progress.ts';
import { count, printable } from '../output/text.ts';
import type { Session } from '../session.ts';
import { countsOf, countsText } from './arraySummary.ts';
import { type Member, memberOf, newestByIndex, readMembers } from './members.ts';

/** A look at a large array is work for the coordinator: waiting this many times as long bounds it to a fifth of the time. */
const restsPerLook = 4;
const restMsMin = 500;
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
    const tellFailures = failureTeller(context, progress, id);
    const tellCounts = countsTeller(context, progress);
    // A large array is stored some jobs at a time; where jobs of it were requeued all are there.
    let isStored = replaced.size > 0;
    const retry = {
      ...{ patienceMs: outagePatienceMs, abort },
      onAway: (error: Error) => progress.show(awayText(error)),
    };
    const last = await unlessAborted(abort, async () => {
      for (;;) {
        const beganMs = context.clock.monotonicMs();
        const look = await session.retrying(
          (api) => lookAtArray(api, { id, size }, { replaced, isStored }, context.clock.wallMs()),
          retry,
        );
        isStored = look.isStored;
        tellFailures(look.failures);
        tellCounts(look.counts);
        const isOver = unfinishedStates.every((state) => look.counts[state] === 0);
        // A job that was requeued meanwhile and succeeded is seen among all jobs only.
        if (isOver && look.counts.succeeded === size) return look.counts;
        if (isOver) return session.retrying(async (api) => countsOf(await readMembers(api, id, 0)), retry);
        const tookMs = context.clock.monotonicMs() - beganMs;
        await sleep(Math.max(restMsMin, restsPerLook * tookMs), undefined, { signal: abort });
      }
    });
    progress.end();
    return last === null ? detached(context, id, null) : ended(context, id, size, last);
  });
}

type Counts = Readonly<Record<JobStateKind, number>>;

interface ArrayLook {
  readonly counts: Counts;
  /** What went wrong until now, by keys that stay the same. */
  readonly failures: ReadonlyMap<string, string>;
  /** All of its jobs have been seen. */
  readonly isStored: boolean;
}

/**
 * Jobs that succeeded, most of them in the end, are not read once all jobs were seen: they are those that are neither
 * unfinished nor failed. Before that, those that are not there yet wait to be stored.
 */
async function lookAtArray(
  api: MusterApi,
  { id: arrayId, size }: AttendedArray,
  before: { readonly replaced: ReadonlySet<string>; readonly isStored: boolean },
  nowMs: number,
): Promise<ArrayLook> {
  const members: Member[] = [];
  const failures = new Map<string, string>();
  // The unfinished first: a job that ends in between is then in both lists, and never in none.
  for (const states of [unfinishedStates, before.isStored ? badStates : terminalJobStates]) {
    for await (const { jobs } of pagesOfJobs(api, { arrayId, states }, Number.POSITIVE_INFINITY)) {
      for (const job of jobs) {
        if (before.replaced.has(job.id)) continue;
        members.push(memberOf(job, nowMs));
        for (const { key, text } of troublesOf(job)) failures.set(`${job.id}.${key}`, text);
      }
    }
  }
  const newest = newestByIndex(members);
  const counts = countsOf(newest);
  const others = Math.max(0, size - newest.length);
  const isStored = before.isStored || others === 0;
  return {
    ...{ failures, isStored },
    counts: isStored
      ? { ...counts, succeeded: counts.succeeded + others }
      : { ...counts, queued: counts.queued + others },
  };
}

/** @returns to be called with what went wrong until now, at each look; `silently`: it is known to the reader */
export function failureTeller(
  { io, environment }: Context,
  progress: Progress,
  arrayId: string,
): (failures: ReadonlyMap<string, string>, how?: { readonly silently: boolean }) => void {
  const { dim } = coloursFor(io.stderr, environment);
  const told = new Set<string>();
  return (failures, { silently } = { silently: false }) => {
    const fresh = [...failures].filter(([key]) => !told.has(key));
    for (const [key] of fresh) told.add(key);
    if (silently || fresh.length === 0) return;
    const lines = fresh.slice(0, failureLinesMax).map(([, text]) => printable(text));
    const more = fresh.length - lines.length;
    if (more > 0) lines.push(`and ${more} more; ${environment.programName} explain ${arrayId}`);
    progress.clear();
    void io.stderr.write(lines.map((line) => `${dim(`— ${line} —`)}\n`).join('')).catch(() => {});
  };
}

/** On a terminal one line that is rewritten; elsewhere a line from time to time. */
function countsTeller({ io, clock }: Context, progress: Progress): (counts: Counts) => void {
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

async function ended(context: Context, arrayId: string, size: number, counts: Counts): Promise<Attendance> {
  const { stderr } = context.io;
  if (counts.succeeded === size) {
    await stderr.write(`all ${count(size, 'job')} succeeded\n`);
    return { exitCode: exitCodes.ok, job: null };
  }
  const { programName } = context.environment;
  await stderr.write(
    `${size - counts.succeeded} of ${count(size, 'job')} did not succeed: ${countsText(counts)}\n` +
      `More with: ${programName} explain ${arrayId}\n`,
  );
  return { exitCode: exitCodes.jobFailed, job: null };
}
