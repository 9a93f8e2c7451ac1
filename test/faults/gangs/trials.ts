/** Plays faults on several gangs at once, each on one host of one gang, and holds what came of it against the rules. */

import { setTimeout as delay } from 'node:timers/promises';
import type { JobView } from '@muster/common/views';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { type Beat, boottimeMs, readBeats } from '../../support/hosts/signOfLife.ts';
import { beatsDirOf, endGangs, type Gang, settle, startGangs, untilBeatingOn } from './beatingGang.ts';
import { gapsOf, historyProblems, pidsOf } from './gangHistory.ts';

export type Undo = () => Promise<void>;

export interface Trial {
  readonly name: string;
  /** Whose host it happens to. */
  readonly rank: 0 | 1;
  /** How long the gang has run before. */
  readonly afterMs: number;
  readonly inflict: (victim: Host) => Promise<Undo>;
  /** Milliseconds; null: until the gang has done its work elsewhere. */
  readonly lastsMs: number | null;
  /** Whether the gang goes on elsewhere. null: it may, or may not. */
  readonly moves: boolean | null;
  /**
   * For hosts that stood still beyond their lease: no fence could act there either, and so many milliseconds after they go
   * on nothing of the old attempt may run any more.
   */
  readonly leftoversMs?: number;
}

export interface Outcome {
  readonly problems: readonly string[];
  /** Between a fenced attempt and the next one. */
  readonly gapsMs: readonly number[];
}

/** @param wave a name, for its files */
export async function playWave(
  cluster: GangCluster,
  wave: string,
  trials: readonly Trial[],
): Promise<Outcome> {
  const beatsDir = beatsDirOf(cluster, wave);
  await settle(cluster);
  const gangs = await startGangs(cluster, beatsDir, trials.length);

  const played = await Promise.allSettled(
    gangs.map((gang, index) => play(cluster, gang, trials[index] as Trial)),
  );
  await cluster.untilOnline();
  // Whoever has not moved is to go on where it is.
  for (const { jobId } of gangs) {
    const { state } = await cluster.api.getJob(jobId);
    if (state === 'running') await untilBeatingOn(beatsDir, jobId);
  }

  const jobs = await endGangs(
    cluster,
    gangs.map(({ jobId }) => jobId),
  );

  const beats = readBeats(beatsDir);
  const outcomes = await Promise.all(
    jobs.map(async (job, index) => {
      const result = played[index];
      const trial = trials[index] as Trial;
      if (result?.status !== 'fulfilled') {
        return { problems: [`${trial.name}: ${job.id}: ${String(result?.reason)}`], gapsMs: [] };
      }
      return judge(
        cluster,
        trial,
        result.value,
        job,
        beats.filter((beat) => beat.job === job.id),
      );
    }),
  );

  return {
    problems: outcomes.flatMap(({ problems }) => problems),
    gapsMs: outcomes.flatMap(({ gapsMs }) => gapsMs),
  };
}

interface Played {
  /** The job before the fault was undone. */
  readonly before: JobView;
  /** CLOCK_BOOTTIME at which that began. */
  readonly undoneAtMs: number;
}

async function play(cluster: GangCluster, gang: Gang, trial: Trial): Promise<Played> {
  await delay(trial.afterMs);
  const undo = await trial.inflict(gang.hosts[trial.rank]);
  let undoneAtMs = 0;
  try {
    if (trial.lastsMs === null) {
      const hasMoved = ({ state }: JobView) => state === 'succeeded';
      await cluster.untilJob(gang.jobId, `has done its work elsewhere (${trial.name})`, hasMoved);
    } else {
      await delay(trial.lastsMs);
    }
    const before = await cluster.api.getJob(gang.jobId);
    undoneAtMs = boottimeMs() - 20;
    return { before, undoneAtMs };
  } finally {
    await undo();
  }
}

async function judge(
  cluster: GangCluster,
  trial: Trial,
  { before, undoneAtMs }: Played,
  job: JobView,
  beats: readonly Beat[],
): Promise<Outcome> {
  const { leftoversMs = 0 } = trial;
  const isLeftover = ({ attempt, rank, atMs }: Beat) =>
    attempt === 1 && rank === trial.rank && atMs >= undoneAtMs && atMs < undoneAtMs + leftoversMs;
  const own = leftoversMs === 0 ? beats : beats.filter((beat) => !isLeftover(beat));
  const problems = [...(await historyProblems(cluster, own, job))];
  const moved = job.attempts.length > 1;
  if (trial.moves !== null && moved !== trial.moves) problems.push(`has had ${job.attempts.length} attempts`);
  if (moved && job.state !== 'succeeded') problems.push(`is ${job.state} after it moved`);
  for (const { cause, number } of job.attempts.slice(0, -1)) {
    if (cause?.kind !== 'node_lost' && trial.moves === true)
      problems.push(`attempt ${number} ended with ${JSON.stringify(cause)}`);
  }
  // What a node that comes back says of an attempt that is over must change nothing.
  if (before.state === 'succeeded' && JSON.stringify(before) !== JSON.stringify(job)) {
    problems.push(`was changed after its end, from ${JSON.stringify(before)}, to ${JSON.stringify(job)}`);
  }
  if (!moved && pidsOf(beats, 1).some((pids) => pids.length !== 1)) {
    problems.push(`its ranks had the processes ${JSON.stringify(pidsOf(beats, 1))}`);
  }
  return {
    problems: problems.map((problem) => `${trial.name}: ${job.id}: ${problem}`),
    gapsMs: gapsOf(own, job),
  };
}
