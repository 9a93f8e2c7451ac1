/**
 * Detects attempts that hang. An agent reports a task whose output is quiet for several times as long as usual while its GPUs
 * compute nothing. This watch decides for the whole attempt, because it knows all tasks. Silence alone is never enough: there
 * is no verdict without such a report, or while a task of the attempt does not respond.
 */

import { type JobId, type TaskKey, taskKey } from '@muster/common/ids';
import type { HangSign } from '@muster/common/training';
import type { TaskReport } from '@muster/common/views';
import { missedHeartbeatsMax } from '@muster/common/wire/protocol';
import { coordinatorPart } from '../caller.ts';
import type { Loop } from '../loop.ts';
import type { Attempt, Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('hang detection');

/** One sign is not enough: a task that was about to make progress has done so by the next heartbeat. */
const heartbeatsMin = 2;

/** What is known of one task that runs. */
export interface TaskWatch {
  readonly nodeRank: number;
  readonly sign: HangSign | null;
  /** Heartbeats in a row that carried a sign. */
  readonly heartbeats: number;
  /** Since it was last seen to make progress of its own. null: it reports none. */
  readonly progressAgoMs: number | null;
  /** It was reported recently, and is free to run: a frozen task makes no progress because Muster has frozen it. */
  readonly isWatched: boolean;
}

export interface HangVerdict {
  /** Of the task that has been quiet longest. */
  readonly nodeRank: number;
  readonly sign: HangSign;
}

/**
 * @param tasks every task of the attempt that has not ended
 * @returns null if the attempt does not hang, or if that is unknown
 */
export function judgeHang(tasks: readonly TaskWatch[]): HangVerdict | null {
  if (tasks.some(({ isWatched }) => !isWatched)) return null;
  const still = tasks.flatMap(({ nodeRank, sign, heartbeats }) =>
    sign !== null && heartbeats >= heartbeatsMin ? [{ nodeRank, sign }] : [],
  );
  const [first] = still.sort((a, b) => b.sign.quietForMs - a.sign.quietForMs || a.nodeRank - b.nodeRank);
  if (first === undefined) return null;
  // Ranks that wait for one another become quiet within moments. A rank that kept running for half of the time does not wait.
  const recentMs = first.sign.quietForMs / 2;
  const goesOn = tasks.some(
    ({ sign, progressAgoMs }) => sign === null && progressAgoMs !== null && progressAgoMs < recentMs,
  );
  return goesOn ? null : first;
}

/** Times are monotonic. */
interface Noted {
  readonly sign: HangSign | null;
  readonly heartbeats: number;
  readonly frozen: boolean;
  /** Lines of metrics that were read: more of them are progress. */
  readonly rows: number;
  /** It is null for a task that has reported none. */
  readonly progressAtMs: number | null;
  readonly reportedAtMs: number;
}

interface Watched {
  readonly attempt: number;
  readonly tasks: Map<TaskKey, Noted>;
  /** Of this stretch; a new one begins when no task shows a sign any longer. */
  isReported: boolean;
}

export interface HangWatchParts {
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly heartbeatIntervalMs: number;
}

export class HangWatch {
  private readonly parts: HangWatchParts;
  private readonly jobs = new Map<JobId, Watched>();

  constructor(parts: HangWatchParts) {
    this.parts = parts;
  }

  /** Records what a heartbeat reports of a task that its node holds. A new attempt begins with nothing known. */
  note({ task, state, frozen, hang, training }: TaskReport): void {
    const watched = this.watchedOf(task.jobId, task.attempt);
    const key = taskKey(task);
    if (state !== 'running') {
      watched.tasks.delete(key);
      return;
    }
    const before = watched.tasks.get(key);
    const reportedAtMs = this.parts.monotonicMs();
    const rows = training?.rows ?? 0;
    watched.tasks.set(key, {
      sign: hang,
      heartbeats: hang === null || frozen ? 0 : (before?.heartbeats ?? 0) + 1,
      frozen,
      rows,
      progressAtMs: this.progressAtMs(before, rows, training?.atMs ?? 0, reportedAtMs),
      reportedAtMs,
    });
  }

  /** One pass; idempotent. */
  run(state: ClusterState, loop: Loop): readonly Promise<void>[] {
    const committed: Promise<void>[] = [];
    for (const [jobId, watched] of this.jobs) {
      const job = state.jobs.get(jobId);
      const attempt = runningAttempt(job);
      // One that is about to run is reported before it does.
      if (attempt === null ? job?.state.kind !== 'starting' : attempt.number !== watched.attempt) {
        this.jobs.delete(jobId);
        continue;
      }
      if (attempt === null) continue;
      if ([...watched.tasks.values()].every(({ sign }) => sign === null)) watched.isReported = false;
      const verdict = watched.isReported ? null : judgeHang(this.tasksOf(jobId, attempt, watched));
      if (verdict === null) continue;
      watched.isReported = true;
      const event = { kind: 'hung', attempt: attempt.number, ...verdict } as const;
      committed.push(loop.run(caller, (draft, wallMs) => applyJobEvent(draft, jobId, event, wallMs)));
    }
    return committed;
  }

  private watchedOf(jobId: JobId, attempt: number): Watched {
    const before = this.jobs.get(jobId);
    if (before?.attempt === attempt) return before;
    const fresh = { attempt, tasks: new Map(), isReported: false };
    this.jobs.set(jobId, fresh);
    return fresh;
  }

  /** When it last made progress. Progress before its first report is timed by its own clock. */
  private progressAtMs(before: Noted | undefined, rows: number, atMs: number, nowMs: number): number | null {
    if (rows === 0) return null;
    if (before !== undefined) return rows === before.rows ? before.progressAtMs : nowMs;
    return nowMs - Math.max(0, this.parts.wallMs() - atMs);
  }

  private tasksOf(jobId: JobId, attempt: Attempt, watched: Watched): readonly TaskWatch[] {
    const nowMs = this.parts.monotonicMs();
    // After this many missed heartbeats, the tasks of a node may have made progress since its last one.
    const silentMs = missedHeartbeatsMax * this.parts.heartbeatIntervalMs;
    return attempt.tasks.flatMap(({ nodeRank, state }) => {
      if (state === 'ended') return [];
      const noted = watched.tasks.get(taskKey({ jobId, attempt: attempt.number, nodeRank }));
      if (noted === undefined)
        return [{ nodeRank, sign: null, heartbeats: 0, progressAgoMs: null, isWatched: false }];
      const { sign, heartbeats, progressAtMs, reportedAtMs, frozen } = noted;
      const progressAgoMs = progressAtMs === null ? null : nowMs - progressAtMs;
      const isWatched = !frozen && nowMs - reportedAtMs < silentMs;
      return [{ nodeRank, sign, heartbeats, progressAgoMs, isWatched }];
    });
  }
}

function runningAttempt(job: Job | undefined): Attempt | null {
  return job?.state.kind === 'running' ? job.state.attempt : null;
}
