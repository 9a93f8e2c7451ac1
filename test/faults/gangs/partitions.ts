/**
 * Hosts of running gangs are cut off, alone or together with what should hold their fence. Nothing may run twice; what
 * comes back in time runs on.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFailed, test } from 'vitest';
import type { Chance } from '../../support/chance.ts';
import { type Cut, cutOff } from '../../support/hosts/cuts.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { signalProcess } from '../../support/hosts/programs.ts';
import { trialsOf } from '../../support/trials.ts';
import { gangsAtOnce, guardOf } from './beatingGang.ts';
import { playWave, type Trial, type Undo } from './trials.ts';

/** Well within what a lease leaves after a missed heartbeat, and for a new connection. */
const shortMs = { min: 200, max: 3_500 };
/** Long enough for the lease of a gang that is never heard in that time to run out. */
const longMs = 13_000;

const someTime = (chance: Chance) => chance.integer(0, 1_500);
const someRank = (chance: Chance) => chance.pick<0 | 1>([0, 1]);

/** Every other one until the gang has moved; the usual run has one of each kind. */
function cutTrials(chance: Chance, name: string, cuts: readonly [Cut, ...Cut[]]): readonly Trial[] {
  return Array.from({ length: trialsOf(50, 1 + cuts.length) }, (_, index) => {
    const isLong = index % 2 === 0;
    const cut = cuts[(index >> 1) % cuts.length] ?? cuts[0];
    return {
      name: `${isLong ? 'long' : 'short'} partition, ${name}: ${cut}`,
      rank: someRank(chance),
      afterMs: someTime(chance),
      inflict: (victim) => cutOff(victim, cut),
      lastsMs: isLong ? null : chance.integer(shortMs.min, shortMs.max),
      hasToMove: isLong,
    };
  });
}

function lossyTrials(chance: Chance): readonly Trial[] {
  return Array.from({ length: trialsOf(50, 1) }, () => ({
    name: 'packets are lost',
    rank: someRank(chance),
    afterMs: someTime(chance),
    inflict: (victim) => cutOff(victim, '30 % loss'),
    lastsMs: longMs,
    hasToMove: false,
  }));
}

function flappingTrials(chance: Chance): readonly Trial[] {
  return Array.from({ length: trialsOf(50, 1) }, () => {
    const periods = Array.from({ length: 40 }, () => ({
      offMs: chance.integer(100, 7_000),
      onMs: chance.integer(50, 1_500),
    }));
    return {
      name: 'the network flaps',
      rank: someRank(chance),
      afterMs: someTime(chance),
      inflict: (victim) => flap(victim, periods),
      lastsMs: longMs,
      hasToMove: false,
    };
  });
}

async function flap(
  host: Host,
  periods: readonly { readonly offMs: number; readonly onMs: number }[],
): Promise<Undo> {
  const ending = new AbortController();
  const { signal } = ending;
  const pause = (ms: number) => delay(ms, undefined, { signal }).catch(() => {});
  const flapping = (async () => {
    for (const { offMs, onMs } of periods) {
      if (signal.aborted) return;
      const mend = await cutOff(host, 'both ways');
      await pause(offMs);
      await mend();
      await pause(onMs);
    }
  })();
  return async () => {
    ending.abort();
    await flapping;
  };
}

/** What happens to the host of a rank besides the cut, and how it is undone. */
type Harm = (victim: Host) => Promise<Undo>;

const harms: Readonly<Record<string, Harm>> = {
  'its agent stopped': async ({ agent }) => {
    agent.pause();
    return async () => agent.resume();
  },
  'its agent killed': async ({ agent }) => {
    await agent.kill();
    return () => agent.start();
  },
  'its guard stopped': async (victim) => {
    const pid = guardOf(victim);
    signalProcess(pid, 'SIGSTOP');
    return async () => void signalProcess(pid, 'SIGCONT');
  },
  'its guard killed': async (victim) => {
    signalProcess(guardOf(victim), 'SIGKILL');
    return async () => {};
  },
};

function harmTrials(chance: Chance): readonly Trial[] {
  return Object.entries(harms).flatMap(([name, harm]) =>
    Array.from({ length: trialsOf(20, 1) }, () => {
      const cutFirst = chance.pick([true, false]);
      const backInOrder = chance.pick([true, false]);
      const cut = (victim: Host) => cutOff(victim, 'both ways');
      return {
        name: `partition with ${name}, ${cutFirst ? 'cut' : 'harm'} first, back in ${backInOrder ? 'that' : 'reverse'} order`,
        rank: someRank(chance),
        afterMs: someTime(chance),
        inflict: async (victim: Host) => {
          const undos: Undo[] = [];
          for (const step of cutFirst ? [cut, harm] : [harm, cut]) undos.push(await step(victim));
          return async () => {
            for (const undo of backInOrder ? undos : undos.reverse()) await undo();
          };
        },
        lastsMs: null,
        hasToMove: true,
      };
    }),
  );
}

function frozenTrials(chance: Chance): readonly Trial[] {
  return Array.from({ length: trialsOf(20, 1) }, () => ({
    name: 'the host stands still beyond its lease',
    rank: someRank(chance),
    afterMs: someTime(chance),
    inflict: async (victim) => {
      await victim.pause();
      return () => victim.unpause();
    },
    lastsMs: null,
    hasToMove: true,
    leftoversMs: 1_000,
  }));
}

export function partitionTests(cluster: () => GangCluster, chance: Chance): void {
  // Mixed, so that each wave has gangs that stay and gangs that move.
  const trials = chance.shuffled([
    ...cutTrials(chance, 'both ways', ['both ways']),
    ...cutTrials(chance, 'one way', ['nothing gets in', 'nothing gets out']),
    ...cutTrials(chance, 'with resets', ['resets']),
    ...lossyTrials(chance),
    ...flappingTrials(chance),
    ...harmTrials(chance),
    ...frozenTrials(chance),
  ]);
  for (let first = 0; first < trials.length; first += gangsAtOnce) {
    const wave = trials.slice(first, first + gangsAtOnce);
    const title = `hosts in trouble, ${first + 1} to ${first + wave.length} of ${trials.length}: nothing runs twice`;
    test(title, async ({ annotate }) => {
      onTestFailed(() => void process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`));
      const { problems, gapsMs } = await playWave(cluster(), `partitions-${first}`, wave);
      await annotate(`from fenced attempts to the next, ms: ${gapsMs.join(' ')}`, 'gaps');
      expect(problems).toEqual([]);
    });
  }
}
