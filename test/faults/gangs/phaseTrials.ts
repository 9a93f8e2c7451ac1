/** Every member of a gang, in every phase, is killed, hangs or is cut off: all ranks run or none, and nothing stays behind. */
import type { JobView } from '@muster/common/views';
import { expect, onTestFailed, test } from 'vitest';
import type { Chance } from '../../support/chance.ts';
import { cutOff } from '../../support/hosts/cuts.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { type Beat, boottimeMs, readBeats } from '../../support/hosts/signOfLife.ts';
import { trialsOf, triesAll } from '../../support/trials.ts';
import { beatingSpec, endGangs, gangOf, gangsAtOnce } from './beatingGang.ts';
import { historyProblems } from './gangHistory.ts';
import { bringTo, letGo, type Phase, phases, resume, type Stage } from './phases.ts';
import type { Undo } from './trials.ts';
import { playAlone } from './wave.ts';

/** After SIGTERM it beats on until it is killed: a grace in which something can happen. */
const unstoppable = 'trap "" TERM;';
const faults = ['loses power', 'loses its agent', 'hangs', 'is cut off'] as const;

interface PhaseTrial {
  readonly rank: 0 | 1;
  readonly phase: Phase;
  readonly fault: (typeof faults)[number];
}

export function phaseTests(cluster: () => GangCluster, chance: Chance): void {
  const every = ([0, 1] as const).flatMap((rank) =>
    phases.flatMap((phase) => faults.map((fault): PhaseTrial => ({ rank, phase, fault }))),
  );
  const some = twoFaultsInEachPhase(chance);
  const count = trialsOf(240, some.length);
  const trials = Array.from({ length: Math.ceil(count / every.length) }, () =>
    chance.shuffled(triesAll ? every : some),
  )
    .flat()
    .slice(0, count);
  for (let first = 0; first < trials.length; first += gangsAtOnce) {
    const wave = trials.slice(first, first + gangsAtOnce);
    const last = first + wave.length;
    test(`members in trouble in some phase, ${first + 1} to ${last} of ${count}: all or none`, async () => {
      onTestFailed(() => void process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`));
      expect(await playWave(cluster(), `phases-${first}`, wave)).toEqual([]);
    });
  }
}

/** Over all phases each fault comes three or four times; which of them meet is drawn. */
function twoFaultsInEachPhase(chance: Chance): readonly PhaseTrial[] {
  const first = chance.integer(0, faults.length - 1);
  return phases.flatMap((phase, index) =>
    [0, faults.length / 2].map((shift): PhaseTrial => {
      const fault = faults[(first + index + shift) % faults.length] ?? 'hangs';
      return { rank: chance.pick([0, 1]), phase, fault };
    }),
  );
}

interface Played {
  /** The job before the fault was undone. */
  readonly before: JobView;
  /** CLOCK_BOOTTIME at which that began. */
  readonly undoneAtMs: number;
}

/** What a host that stood still beyond its lease still does of an attempt that is over, before its fences act. */
const leftoversMs = 1_000;

function playWave(
  cluster: GangCluster,
  name: string,
  trials: readonly PhaseTrial[],
): Promise<readonly string[]> {
  return playAlone(cluster, name, async (beatsDir) => {
    const stages = await allocateGangs(cluster, beatsDir, trials);
    const played = await Promise.allSettled(stages.map(({ trial, stage }) => play(trial, stage)));
    await cluster.untilOnline();
    const ended = await endGangs(
      cluster,
      stages.map(({ stage }) => stage.gang.jobId),
    );
    const beats = readBeats(beatsDir);
    const problems = await Promise.all(
      stages.map(async ({ trial }, index) => {
        const { rank, phase, fault } = trial;
        const [job, result] = [ended[index]?.job, played[index]];
        if (job === undefined || result === undefined) return [`${name} has no end of gang ${index}`];
        const own = beats.filter((beat) => beat.job === job.id);
        const seen =
          result.status === 'rejected'
            ? [String(result.reason), ...partialProblems(own, phase)]
            : [
                ...(await historyProblems(cluster, withoutLeftovers(own, trial, result.value), job)),
                ...partialProblems(own, phase),
                ...endProblems(job, result.value.before, phase),
              ];
        return seen.map((problem) => `rank ${rank} ${fault} while ${phase}: ${job.id}: ${problem}`);
      }),
    );
    return problems.flat();
  });
}

function withoutLeftovers(
  beats: readonly Beat[],
  { rank, fault }: PhaseTrial,
  { undoneAtMs }: Played,
): readonly Beat[] {
  if (fault !== 'hangs') return beats;
  const isLeftover = ({ attempt, rank: of, atMs }: Beat) =>
    attempt === 1 && of === rank && atMs >= undoneAtMs && atMs < undoneAtMs + leftoversMs;
  return beats.filter((beat) => !isLeftover(beat));
}

/** A rank that runs while its peer is not even ready: the gang has started in part. */
function partialProblems(beats: readonly Beat[], phase: Phase): readonly string[] {
  const isBeforeRelease = phase === 'preparing' || phase === 'prepared' || phase === 'checking';
  const early = new Set(beats.filter(({ attempt }) => attempt === 1).map(({ rank }) => rank));
  return isBeforeRelease ? [...early].map((rank) => `rank ${rank} of attempt 1 ran`) : [];
}

function endProblems(job: JobView, before: JobView, phase: Phase): readonly string[] {
  const { state, attempts } = job;
  const isRight =
    phase === 'stopping'
      ? state === 'cancelled' && attempts.length === 1
      : state === 'succeeded' && attempts.length > 1;
  return [
    ...(isRight ? [] : [`is ${state} after ${JSON.stringify(attempts)}`]),
    // What a node that returns reports about an attempt that is over must change nothing.
    ...(JSON.stringify(before) === JSON.stringify(job) ? [] : ['was changed after its end']),
  ];
}

/** Every agent is stopped meanwhile, and those of the gangs still are afterwards. */
async function allocateGangs(
  cluster: GangCluster,
  beatsDir: string,
  trials: readonly PhaseTrial[],
): Promise<readonly { readonly trial: PhaseTrial; readonly stage: Stage }[]> {
  for (const { agent } of cluster.hosts) agent.pause();
  const allocated = await Promise.all(
    trials.map(async (trial) => {
      const jobId = await cluster.submit(
        beatingSpec(cluster, beatsDir, trial.phase === 'stopping' ? unstoppable : ''),
      );
      const job = await cluster.untilJob(jobId, 'is allocated', ({ attempts }) => attempts.length > 0);
      const gang = gangOf(cluster, job);
      const [victim, peer] = [gang.hosts[trial.rank], gang.hosts[trial.rank === 0 ? 1 : 0]];
      const stage: Stage = { cluster, gang, beatsDir, victim, victimRank: trial.rank, peer, holds: [] };
      return { trial, stage };
    }),
  );
  const taken = new Set(allocated.flatMap(({ stage }) => stage.gang.hosts));
  for (const host of cluster.hosts) if (!taken.has(host)) resume(host);
  return allocated;
}

async function play({ phase, fault }: PhaseTrial, stage: Stage): Promise<Played> {
  const { cluster, gang, victim, peer } = stage;
  let undo: Undo = async () => {};
  try {
    await bringTo(phase, stage);
    undo = await inflict(fault, victim);
    await letGo(stage);
    const before = await cluster.untilEnded(gang.jobId);
    return { before, undoneAtMs: boottimeMs() - 20 };
  } finally {
    await undo();
    await letGo(stage);
    resume(victim);
    resume(peer);
  }
}

async function inflict(fault: PhaseTrial['fault'], victim: Host): Promise<Undo> {
  switch (fault) {
    case 'loses power':
      // Nobody is told; a stopped agent has to be ended by hand, because what brought it into its host is stopped with it.
      await victim.unplug();
      await victim.agent.kill();
      await victim.kill();
      return () => victim.boot();
    case 'loses its agent':
      await victim.agent.kill();
      return () => victim.agent.start();
    case 'hangs':
      await victim.pause();
      return () => victim.unpause();
    case 'is cut off':
      return cutOff(victim, 'both ways');
    default:
      return fault satisfies never;
  }
}
