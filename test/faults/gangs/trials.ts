/** Plays faults on several gangs at once, each on one host of one gang, and holds what came of it against the rules. */

import { setTimeout as delay } from 'node:timers/promises';
import type { JobView } from '@muster/common/views';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { type Beat, boottimeMs, readBeats } from '../../support/hosts/signOfLife.ts';
import { type EndedGang, endGangs, type Gang, startGangs, untilSettled } from './beatingGang.ts';
import { gapsOf, historyProblems, needlessMoves, pidsOf, type Silences, silencesOf } from './gangHistory.ts';
import { playAlone } from './wave.ts';

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
  /** The gang must move to other nodes. Otherwise it may, if its node was silent for long enough. */
  readonly hasToMove: boolean;
  /**
   * For hosts that were paused beyond their lease: no fence could act there either. This many milliseconds after they run
   * again, nothing of the old attempt may run any longer.
   */
  readonly leftoversMs?: number;
}

export interface Outcome {
  readonly problems: readonly string[];
  /** Between a fenced attempt and the next one. */
  readonly gapsMs: readonly number[];
}

/** @param wave a name, for its files */
export function playWave(cluster: GangCluster, wave: string, trials: readonly Trial[]): Promise<Outcome> {
  return playAlone(cluster, wave, async (beatsDir) => {
    const gangs = await startGangs(cluster, beatsDir, trials.length);
    const jobIds = gangs.map(({ jobId }) => jobId);

    const played = await Promise.allSettled(
      gangs.map((gang, index) => play(cluster, gang, trials[index] as Trial)),
    );
    await cluster.untilOnline();
    await untilSettled(cluster, beatsDir, jobIds);

    const ended = await endGangs(cluster, jobIds);
    const beats = readBeats(beatsDir);
    const silences = await silencesOf(cluster);
    const outcomes = await Promise.all(
      ended.map(async (gang, index) => {
        const result = played[index];
        const trial = trials[index] as Trial;
        if (result?.status !== 'fulfilled') {
          return { problems: [`${trial.name}: ${gang.job.id}: ${String(result?.reason)}`], gapsMs: [] };
        }
        const own = beats.filter((beat) => beat.job === gang.job.id);
        return judge(cluster, { trial, played: result.value, gang, beats: own, silences });
      }),
    );

    return {
      problems: outcomes.flatMap(({ problems }) => problems),
      gapsMs: outcomes.flatMap(({ gapsMs }) => gapsMs),
    };
  });
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

interface TrialRecord {
  readonly trial: Trial;
  readonly played: Played;
  readonly gang: EndedGang;
  /** Of its job. */
  readonly beats: readonly Beat[];
  readonly silences: Silences;
}

async function judge(cluster: GangCluster, record: TrialRecord): Promise<Outcome> {
  const { trial, gang, beats, silences } = record;
  const { before, undoneAtMs } = record.played;
  const { job, wasStopped } = gang;
  const { leftoversMs = 0 } = trial;
  const isLeftover = ({ attempt, rank, atMs }: Beat) =>
    attempt === 1 && rank === trial.rank && atMs >= undoneAtMs && atMs < undoneAtMs + leftoversMs;
  const own = leftoversMs === 0 ? beats : beats.filter((beat) => !isLeftover(beat));
  const problems = [...(await historyProblems(cluster, own, job)), ...needlessMoves(own, job, silences)];
  const moved = job.attempts.length > 1;
  if (trial.hasToMove && !moved) problems.push('has had one attempt');
  if (moved && job.state !== 'succeeded' && !wasStopped) problems.push(`is ${job.state} after it moved`);
  // What a node that returns reports about an attempt that is over must change nothing.
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
