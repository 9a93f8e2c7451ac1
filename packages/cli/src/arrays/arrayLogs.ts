/** The output of a whole array: lines of its jobs, each after the index of its job. */

import { setTimeout as sleep } from 'node:timers/promises';
import { unlessAborted } from '@muster/common/async';
import { MusterError } from '@muster/common/errors';
import { isTerminal } from '@muster/common/states';
import type { Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { abortOnStopRequest } from '../io.ts';
import { awayText, detached } from '../jobs/attend.ts';
import type { ArrayReferent } from '../jobs/reference.ts';
import { problemsOf } from '../jobs/transitions.ts';
import { type MemberSource, memberJsonPrinter, memberPrinter } from '../logs/printer.ts';
import { type LogSelection, missingText, readLogs } from '../logs/read.ts';
import { coloursFor } from '../output/colours.ts';
import { type Progress, startProgress } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import type { Session } from '../session.ts';
import { countsOf, countsText } from './arraySummary.ts';
import { failureReporter, lookPatiently } from './attendArray.ts';
import { type ArrayJobs, type Member, readMembers } from './members.ts';

/** Each holds a stream at the coordinator, and a line of 64 KiB for each rank. */
export const streamsAtOnce = 32;

export interface ArrayLogFlags extends Pick<LogSelection, 'attempt' | 'nodeRank' | 'tailLines'> {
  readonly follow: boolean;
  readonly raw: boolean;
  readonly json: boolean;
}

/** What all readers of one call share. */
interface Reading {
  readonly context: Context;
  readonly session: Session;
  readonly flags: ArrayLogFlags;
  readonly progress: Progress;
  readonly abort: AbortSignal;
  /** Some output was printed. */
  shown: boolean;
}

/** Without `follow` job after job in the order of their indexes; with it as lines come, until the last job has ended. */
export async function showArrayLogs(
  context: Context,
  session: Session,
  array: ArrayReferent,
  flags: ArrayLogFlags,
): Promise<ExitCode> {
  const { io, clock } = context;
  const stop = abortOnStopRequest(io);
  const progress = startProgress(io.stderr, clock);
  // When one stream fails the others end too.
  const ended = new AbortController();
  const abort = AbortSignal.any([stop.signal, ended.signal]);
  const reading: Reading = { context, session, flags, progress, abort, shown: false };
  let last: ArrayJobs | null;
  try {
    last = await unlessAborted(stop.signal, () =>
      flags.follow ? followAll(reading, array) : readAll(reading, array),
    );
  } finally {
    ended.abort();
    progress.end();
    stop.dispose();
  }
  if (last === null || stop.signal.aborted)
    return flags.follow ? (await detached(context, array.id, null)).exitCode : exitCodes.interrupted;
  if (!reading.shown)
    await io.stderr.write(`${printable(array.name)} has no output. ${countsText(countsOf(last))}\n`);
  return exitCodes.ok;
}

async function readAll(reading: Reading, array: ArrayReferent): Promise<ArrayJobs> {
  const { session, context, abort } = reading;
  const jobs = await readMembers(session.api, array, context.clock.wallMs());
  for (const member of jobs.members.filter(mayHaveOutput)) {
    abort.throwIfAborted();
    await readMember(reading, member);
  }
  return jobs;
}

async function followAll(reading: Reading, array: ArrayReferent): Promise<ArrayJobs> {
  const { session, context, progress, abort } = reading;
  const report = failureReporter(context, progress, array.id);
  /** Jobs that have a stream, or had one until their end. */
  const begun = new Set<string>();
  const open = new Set<Promise<void>>();
  /** Of streams. One may fail while nobody waits for it, during a look. */
  const failures: unknown[] = [];
  let isFirst = true;
  let isNoted = false;
  for (;;) {
    const problems = new Map<string, string>();
    const { seen: jobs, restMs } = await lookPatiently(context, session, { progress, abort }, (api) =>
      readMembers(api, array, context.clock.wallMs(), (page) => {
        for (const job of page)
          for (const { key, text } of problemsOf(job)) problems.set(`${job.id}.${key}`, text);
      }),
    );
    // A reader that joins in the middle sees what happens from now on.
    report(problems, { silently: isFirst });
    isFirst = false;
    const { members, notStored } = jobs;
    const waiting = members.filter((member) => mayHaveOutput(member) && !begun.has(member.id));
    // What runs now comes before what can be read at any time.
    waiting.sort((a, b) => Number(isTerminal(a.state)) - Number(isTerminal(b.state)) || a.index - b.index);
    const running = waiting.filter(({ state }) => !isTerminal(state)).length;
    if (running > streamsAtOnce - open.size && !isNoted) {
      isNoted = true;
      await note(
        context,
        `${streamsAtOnce} jobs are followed at the same time, the others once one of these has ended`,
      );
    }
    const rest = sleep(restMs, 'rested' as const, { signal: abort });
    rest.catch(() => {});
    for (let isOver = false; !isOver; ) {
      for (const member of waiting.splice(0, streamsAtOnce - open.size)) {
        begun.add(member.id);
        const stream: Promise<void> = readMember(reading, member)
          .catch((error: unknown) => void failures.push(error))
          .finally(() => open.delete(stream));
        open.add(stream);
      }
      const hasEnded = notStored === 0 && members.every(({ state }) => isTerminal(state));
      if (failures.length > 0) throw failures[0];
      if (open.size === 0 && hasEnded) return jobs;
      isOver = (await Promise.race([rest, ...open])) === 'rested';
    }
  }
}

/** While it waits for its first attempt there is nothing to read. */
function mayHaveOutput({ state, ranMs }: Member): boolean {
  return state !== 'queued' || ranMs !== null;
}

async function readMember(reading: Reading, { id, index }: Member): Promise<void> {
  const { context, session, flags, progress, abort } = reading;
  const { json, raw, ...selection } = flags;
  const source: MemberSource = { index, jobId: id };
  const printer = json ? memberJsonPrinter(source, context) : memberPrinter(source, context, { raw });
  try {
    const missing = await readLogs(
      session,
      { ...selection, jobId: id },
      {
        printer,
        onPiece() {
          reading.shown = true;
          progress.clear();
        },
        onAway: (error) => progress.show(awayText(error)),
        abort,
      },
    );
    await context.io.stderr.write(missingText(missing, id, context.environment.programName));
  } catch (error) {
    // It has no such attempt, or retention has removed it: the others may well have output.
    if (!(error instanceof MusterError) || error.code !== 'not_found') throw error;
  }
}

async function note({ io, environment }: Context, text: string): Promise<void> {
  await io.stderr.write(`${coloursFor(io.stderr, environment).dim(`— ${text} —`)}\n`);
}
