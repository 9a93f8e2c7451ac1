/**
 * `muster logs`: the output of one or all ranks, from the first byte, and on until the job has ended when following.
 * Ranks take turns, a piece each, so that one that writes a lot does not hide the others.
 *
 * The last output of a task arrives after its end, and is waited for as long as its node answers. A node that is silent
 * may never come back, so what it has not sent is named, and the reading ends without it.
 *
 * Output that was removed before it was read ends the reading with an error. What had been removed before the reading began
 * is a line in its place.
 */

import { MusterError } from '@muster/common/errors';
import type { JobId, NodeName, TaskRef } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import type { LogPiece } from '@muster/common/views';
import type { Attempt, Job, Task } from '../model.ts';
import { nextRound } from '../work/inOrder.ts';
import type { LogStore } from './logStore.ts';
import { gapMarker } from './segments.ts';
import { readBytes } from './tail.ts';

export interface StreamLogsOptions {
  readonly jobId: JobId;
  /** null: the newest, and later ones when following. */
  readonly attempt: number | null;
  readonly nodeRank: number | null;
  readonly follow: boolean;
  /** null: from the first byte. */
  readonly tailLines: number | null;
  /** Up to where ranks were read before; empty: nothing was. */
  readonly from: readonly ReadPosition[];
}

/** Bytes of the output of a rank that were read. */
export interface ReadPosition {
  readonly attempt: number;
  readonly nodeRank: number;
  readonly offset: number;
}

export interface ReadLogsParts {
  readonly logs: LogStore;
  readonly readJob: (
    id: JobId,
  ) => Promise<{ readonly job: Job; readonly attempts: readonly Attempt[] } | null>;
  /** Resolves when a job or node may have changed, or something else woke us; never rejects. */
  readonly changed: (subject: JobId | NodeName, abort: AbortSignal) => Promise<void>;
  /** null while the node answers, or is given time to. */
  readonly silence: (node: NodeName) => { readonly silentForMs: number | null } | null;
}

interface Rank {
  readonly task: TaskRef;
  /** Bytes before it were not asked for, or had been removed before the reading began. */
  start: number;
  offset: number;
  complete: boolean;
}

/** @throws {MusterError} `not_found`: output that was still to be read was removed */
export async function* streamLogs(
  parts: ReadLogsParts,
  options: StreamLogsOptions,
  abort: AbortSignal,
): AsyncGenerator<LogPiece> {
  const { jobId, from } = options;
  const ranks = new Map<string, Rank>(
    from.map(({ attempt, nodeRank, offset }) => [
      `${attempt}.${nodeRank}`,
      { task: { jobId, attempt, nodeRank }, start: 0, offset, complete: false },
    ]),
  );
  /** At the first look: where the output begins, and what `tailLines` is about; later attempts are shown whole. */
  let newest: number | null = from.length === 0 ? null : Math.min(...from.map(({ attempt }) => attempt));
  for (;;) {
    if (abort.aborted) return;
    // Waiting has to begin before looking, or a change in between would be slept through.
    const waiter = new AbortController();
    const stopWaiting = () => waiter.abort();
    abort.addEventListener('abort', stopWaiting, { once: true });
    try {
      const changed = options.follow ? parts.changed(options.jobId, waiter.signal) : Promise.resolve();
      const record = await parts.readJob(options.jobId);
      if (record === null) throw jobRemoved(jobId, [...ranks.values()]);
      newest ??= record.job.lastAttempt;
      const attempts = attemptsShown(record.attempts, options, newest);
      let progressed = false;
      for (const attempt of attempts) {
        const tailLines = attempt.number <= newest ? options.tailLines : null;
        if (yield* readAttempt(parts, { ...options, tailLines }, attempt, ranks, abort)) progressed = true;
      }
      for (const attempt of attempts) await requireThere(parts.logs, attempt, options, ranks);
      // All of the above may take place without waiting for anything, and other work has to run in between.
      await nextRound();
      if (progressed) continue;
      const heldBackNodes = attempts.flatMap((attempt) => owingTasks(attempt, options, ranks));
      // As for the job, waiting begins before looking: a node may become silent while its state is being read.
      const silenced = heldBackNodes.map(({ task }) => parts.changed(task.node, waiter.signal));
      const missing = heldBackNodes.flatMap((each) => missingPiece(parts, each));
      const noneToCome =
        (isTerminal(record.job.state.kind) || options.attempt !== null) &&
        attempts.every(({ state }) => state === 'ended');
      const shown = shownRanks(attempts, options, ranks);
      const allRead = missing.length === heldBackNodes.length && !(await anyUnread(parts.logs, shown));
      if (!options.follow || (noneToCome && allRead)) {
        yield* missing;
        return;
      }
      const stopWatching = shown.map((rank) => parts.logs.watch(rank.task, stopWaiting));
      try {
        if (!(await anyUnread(parts.logs, shown))) await Promise.race([changed, ...silenced]);
      } finally {
        for (const stop of stopWatching) stop();
      }
    } finally {
      waiter.abort();
      abort.removeEventListener('abort', stopWaiting);
    }
  }
}

/**
 * A follower reads all attempts from the newest at its first look on: the last output of an attempt may arrive while the
 * next one runs, or never, and must neither be dropped nor waited for.
 */
function attemptsShown(
  attempts: readonly Attempt[],
  options: StreamLogsOptions,
  newest: number,
): readonly Attempt[] {
  if (options.attempt !== null) return attempts.filter(({ number }) => number === options.attempt);
  return attempts.filter(({ number }) => number === newest || (options.follow && number > newest));
}

/** Yields what has arrived, a piece per rank and round. @returns whether there was any */
async function* readAttempt(
  parts: ReadLogsParts,
  options: StreamLogsOptions,
  attempt: Attempt,
  ranks: Map<string, Rank>,
  abort: AbortSignal,
): AsyncGenerator<LogPiece, boolean> {
  let progressed = false;
  for (let more = true; more && !abort.aborted; ) {
    more = false;
    for (const task of attempt.tasks) {
      if (options.nodeRank !== null && task.nodeRank !== options.nodeRank) continue;
      const rank = await rankOf(parts, options, attempt, task.nodeRank, ranks);
      if (rank.complete) continue;
      const { offset } = rank;
      const { nodeRank } = task;
      const piece = { attempt: attempt.number, nodeRank, offset, complete: false, missing: null };
      const data = await parts.logs.read(rank.task, offset, readBytes);
      const gap = data.length > 0 ? null : await parts.logs.gapAt(rank.task, offset);
      if (data.length > 0) {
        yield { ...piece, data };
        rank.offset += data.length;
      } else if (gap !== null) {
        if ((gap.reason === 'removed' || gap.reason === 'budget') && offset > rank.start)
          throw outputRemoved(rank, gap.to - offset, gap.reason);
        const marker = gapMarker(offset, gap);
        // It stands at the end of what is not there, so that what follows it joins without a gap.
        yield { ...piece, offset: gap.to - marker.length, data: marker };
        rank.offset = gap.to;
        rank.start = gap.to;
      } else {
        if (task.exit !== null && offset >= task.exit.logBytes) {
          rank.complete = true;
          yield { ...piece, data, complete: true };
        }
        continue;
      }
      more = true;
      progressed = true;
    }
  }
  return progressed;
}

async function rankOf(
  parts: ReadLogsParts,
  options: StreamLogsOptions,
  attempt: Attempt,
  nodeRank: number,
  ranks: Map<string, Rank>,
): Promise<Rank> {
  const key = `${attempt.number}.${nodeRank}`;
  const present = ranks.get(key);
  if (present !== undefined) return present;
  const task = { jobId: options.jobId, attempt: attempt.number, nodeRank };
  const offset = options.tailLines === null ? 0 : await parts.logs.tailOffset(task, options.tailLines);
  const rank = { task, start: offset, offset, complete: false };
  ranks.set(key, rank);
  return rank;
}

/**
 * Of a job that retention removes, nothing stays that could tell of a gap; and a reader whose look at the directory began before a
 * removal and ended after it knows of none.
 */
async function requireThere(
  logs: LogStore,
  attempt: Attempt,
  options: StreamLogsOptions,
  ranks: ReadonlyMap<string, Rank>,
): Promise<void> {
  for (const { task, offset, bytes } of owingTasks(attempt, options, ranks)) {
    const rank = ranks.get(`${attempt.number}.${task.nodeRank}`);
    const loss =
      rank === undefined || offset === 0 || bytes <= 0 ? null : await logs.lossAt(rank.task, offset);
    if (rank !== undefined && (loss === 'removed' || loss === 'budget'))
      throw outputRemoved(rank, bytes, loss);
  }
}

function outputRemoved({ task, offset }: Rank, bytes: number, reason: 'removed' | 'budget'): MusterError {
  const { jobId, attempt, nodeRank } = task;
  const why = reason === 'budget' ? ', because the budget of logs is used up' : '';
  return new MusterError(
    'not_found',
    `output of ${jobId} was removed while it was read${why}: ${bytes} bytes of attempt ${attempt}, rank ${nodeRank} from byte ${offset} on ` +
      'are gone',
  );
}

function jobRemoved(jobId: JobId, ranks: readonly Rank[]): MusterError {
  const unread = ranks.filter(({ complete }) => !complete);
  const where = unread.map(
    ({ task, offset }) => `attempt ${task.attempt}, rank ${task.nodeRank} from byte ${offset} on`,
  );
  const what = where.length === 0 ? '' : `: what is left of ${where.slice(0, 4).join(' and ')} is gone`;
  return new MusterError('not_found', `${jobId} was removed while its output was read${what}`);
}

/** A task that has ended, and of whose output there is more than was read. */
interface Owing {
  readonly attempt: number;
  readonly task: Task;
  readonly offset: number;
  readonly bytes: number;
}

function owingTasks(
  attempt: Attempt,
  options: StreamLogsOptions,
  ranks: ReadonlyMap<string, Rank>,
): readonly Owing[] {
  return attempt.tasks
    .filter((task) => options.nodeRank === null || task.nodeRank === options.nodeRank)
    .flatMap((task) => {
      const rank = ranks.get(`${attempt.number}.${task.nodeRank}`);
      if (task.exit === null || rank === undefined || rank.complete) return [];
      const { offset } = rank;
      return [{ attempt: attempt.number, task, offset, bytes: task.exit.logBytes - offset }];
    });
}

/** At most one. */
function missingPiece(parts: ReadLogsParts, { attempt, task, offset, bytes }: Owing): readonly LogPiece[] {
  const { node, nodeRank } = task;
  const silence = parts.silence(node);
  if (silence === null) return [];
  const missing = { node, bytes, silentForMs: silence.silentForMs };
  return [{ attempt, nodeRank, offset, data: new Uint8Array(), complete: false, missing }];
}

/** A reader may name positions of others, whose output it is never given. */
function shownRanks(
  attempts: readonly Attempt[],
  options: StreamLogsOptions,
  ranks: ReadonlyMap<string, Rank>,
): readonly Rank[] {
  return attempts.flatMap(({ number, tasks }) =>
    tasks.flatMap(({ nodeRank }) => {
      const rank = ranks.get(`${number}.${nodeRank}`);
      const isShown = options.nodeRank === null || nodeRank === options.nodeRank;
      return isShown && rank !== undefined ? [rank] : [];
    }),
  );
}

async function anyUnread(logs: LogStore, ranks: readonly Rank[]): Promise<boolean> {
  for (const rank of ranks) {
    if (!rank.complete && (await logs.size(rank.task)) > rank.offset) return true;
  }
  return false;
}
