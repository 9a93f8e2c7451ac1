/** A coordinator that is away pauses training at worst: short, for longer than leases last, and for very long. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFailed, test } from 'vitest';
import type { Chance } from '../../support/chance.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import { type Beat, boottimeMs, readBeats } from '../../support/hosts/signOfLife.ts';
import { testPatienceMs } from '../../support/patience.ts';
import { trialsOf } from '../../support/trials.ts';
import { endGangs, startGangs, untilSettled } from './beatingGang.ts';
import { historyProblems, leaseTimes, needlessMoves, pidsOf, silencesOf } from './gangHistory.ts';
import type { Undo } from './trials.ts';
import { playAlone } from './wave.ts';

const minuteMs = 60_000;
const heartbeatMs = 1_000;
const { leaseMs, fenceMs } = leaseTimes;
const gangs = 4;

interface Outage {
  readonly lastsMs: number;
  readonly how: (cluster: GangCluster) => Promise<Undo>;
}

const outages: readonly [Outage['how'], ...Outage['how'][]] = [
  async ({ coordinator }) => {
    await coordinator.kill();
    return () => coordinator.start();
  },
  async ({ coordinator }) => {
    coordinator.pause();
    return async () => coordinator.resume();
  },
];

export function outageTests(cluster: () => GangCluster, chance: Chance): void {
  const isFull = trialsOf(10) === 10;
  const kinds = [
    { name: 'half a lease', lastsMs: leaseMs / 2 },
    { name: 'two leases', lastsMs: 2 * leaseMs },
    { name: 'very long', lastsMs: isFull ? 10 * minuteMs : 3 * leaseMs },
  ];
  const trials = trialsOf(10);
  for (const { name, lastsMs } of kinds) {
    for (let trial = 1; trial <= trials; trial += 1) {
      const how = chance.pick(outages);
      const title = `the coordinator is away, ${name}, ${trial} of ${trials}: no gang ends or moves`;
      test(title, { timeout: lastsMs + testPatienceMs }, async ({ annotate }) => {
        onTestFailed(() => void process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`));
        const wave = `outage-${name.replaceAll(' ', '-')}-${trial}`;
        const thawedAfterMs = await playOutage(cluster(), wave, { lastsMs, how });
        await annotate(`ran again after ms: ${thawedAfterMs.join(' ')}`, 'times');
      });
    }
  }
}

/** @returns milliseconds from the moment that the coordinator was back to the next sign of life, of each rank */
function playOutage(
  cluster: GangCluster,
  wave: string,
  { lastsMs, how }: Outage,
): Promise<readonly number[]> {
  return playAlone(cluster, wave, async (beatsDir) => {
    const jobIds = (await startGangs(cluster, beatsDir, gangs)).map(({ jobId }) => jobId);
    const awayAtMs = boottimeMs();
    const undo = await how(cluster);
    await delay(lastsMs);
    await undo();
    const backAtMs = boottimeMs();
    await cluster.untilOnline();
    await untilSettled(cluster, beatsDir, jobIds);
    const jobs = (await endGangs(cluster, jobIds)).map(({ job }) => job);
    const beats = readBeats(beatsDir);
    const silences = await silencesOf(cluster);
    const problems = await Promise.all(
      jobs.map(async (job) => {
        const own = beats.filter((beat) => beat.job === job.id);
        return [...(await historyProblems(cluster, own, job)), ...needlessMoves(own, job, silences)];
      }),
    );
    expect(problems.flat()).toEqual([]);
    const ranks = jobIds.flatMap((id) =>
      [0, 1].map((rank) =>
        beats.filter((beat) => beat.job === id && beat.attempt === 1 && beat.rank === rank),
      ),
    );
    // The same process all the time.
    for (const own of ranks) expect(pidsOf(own, 1).flat()).toHaveLength(1);
    if (lastsMs < leaseMs) return [];
    const frozenFromMs = awayAtMs + leaseMs + fenceMs;
    const isFrozen = ({ atMs }: Beat) => atMs > frozenFromMs && atMs < backAtMs - heartbeatMs;
    expect(ranks.flat().filter(isFrozen)).toEqual([]);
    return ranks.map((own) => {
      const later = own.map(({ atMs }) => atMs).filter((atMs) => atMs > backAtMs);
      return Math.min(...later) - backAtMs;
    });
  });
}
