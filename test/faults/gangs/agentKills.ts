/** kill -9 of agents at any moment in the life of their gangs: the gangs must behave as if nothing had happened. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { JobView } from '@muster/common/views';
import { expect, onTestFailed, test } from 'vitest';
import type { Chance } from '../../support/chance.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { type Beat, readBeats } from '../../support/hosts/signOfLife.ts';
import { trialsOf } from '../../support/trials.ts';
import { endGangs, gangsAtOnce } from './beatingGang.ts';
import { historyProblems, needlessMoves, pidsOf, silencesOf } from './gangHistory.ts';
import { playAlone } from './wave.ts';

const killsAtOnce = trialsOf(10, gangsAtOnce);
const lines = 30;
/** About as long as a gang lives, from its submit on. */
const lifeMs = 4_500;

interface Kill {
  readonly host: number;
  readonly afterMs: number;
  readonly awayMs: number;
}

export function agentKillTests(cluster: () => GangCluster, chance: Chance): void {
  const count = trialsOf(100, gangsAtOnce);
  for (let first = 0; first < count; first += killsAtOnce) {
    const places = chance.shuffled(Array.from({ length: 2 * gangsAtOnce }, (_, host) => host));
    const kills = places.slice(0, Math.min(killsAtOnce, count - first)).map((host) => ({
      host,
      afterMs: chance.integer(0, lifeMs),
      awayMs: chance.integer(0, 500),
    }));
    const last = first + kills.length;
    test(`agents are killed, ${first + 1} to ${last} of ${count}: their gangs do not notice`, async () => {
      onTestFailed(() => void process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`));
      expect(await playKills(cluster(), `kills-${first}`, kills)).toEqual([]);
    });
  }
}

/** Writes beats, and prints one line after the other. */
function talkingSpec(cluster: GangCluster, beatsDir: string): JobSpecFile {
  const beat = `/usr/bin/python3 ${cluster.program('signOfLife.py')} ${beatsDir} 3`;
  const talk = `line=0; while [ $line -lt ${lines} ]; do echo line $line; line=$((line + 1)); /usr/bin/sleep 0.1; done`;
  return {
    command: `${beat} & ${talk}; wait`,
    env: { PATH: cluster.sharedDir },
    resources: { nodes: 2, gpus: 1 },
    retry: { max_attempts: 5, backoff: { initial: '100ms', max: '100ms' } },
  };
}

function playKills(cluster: GangCluster, wave: string, kills: readonly Kill[]): Promise<readonly string[]> {
  return playAlone(cluster, wave, async (beatsDir) => {
    const spec = talkingSpec(cluster, beatsDir);
    const jobIds = await Promise.all(Array.from({ length: gangsAtOnce }, () => cluster.submit(spec)));
    await Promise.all(kills.map(({ host, afterMs, awayMs }) => kill(cluster.hosts[host], afterMs, awayMs)));
    for (const jobId of jobIds) await cluster.untilEnded(jobId);
    const jobs = (await endGangs(cluster, jobIds)).map(({ job }) => job);
    const beats = readBeats(beatsDir);
    const silences = await silencesOf(cluster);
    const problems = await Promise.all(
      jobs.map(async (job) => {
        const own = beats.filter((beat) => beat.job === job.id);
        const seen = [
          ...(await historyProblems(cluster, own, job)),
          ...needlessMoves(own, job, silences),
          ...runProblems(own, job),
          ...(await outputProblems(cluster, job)),
        ];
        return seen.map((problem) => `${job.id}: ${problem}`);
      }),
    );
    return problems.flat();
  });
}

async function kill(host: Host | undefined, afterMs: number, awayMs: number): Promise<void> {
  if (host === undefined) throw new Error('there is no such host');
  await delay(afterMs);
  await host.agent.kill();
  await delay(awayMs);
  await host.agent.start();
}

/** It has done its work, and no attempt had a rank twice. */
function runProblems(beats: readonly Beat[], job: JobView): readonly string[] {
  const last = job.attempts.at(-1)?.number ?? 0;
  const twice = job.attempts.filter(({ number }) => pidsOf(beats, number).some((pids) => pids.length > 1));
  return [
    ...(job.state === 'succeeded' ? [] : [`is ${job.state}: ${JSON.stringify(job.attempts)}`]),
    ...(pidsOf(beats, last).every((pids) => pids.length === 1)
      ? []
      : [`attempt ${last} did not run as a whole`]),
    ...twice.map(({ number }) => `attempt ${number} ran as ${JSON.stringify(pidsOf(beats, number))}`),
  ];
}

/** Each line of each rank is there, once. */
async function outputProblems(cluster: GangCluster, job: JobView): Promise<readonly string[]> {
  const expected = Array.from({ length: lines }, (_, line) => `line ${line}\n`).join('');
  const outputs = await Promise.all([0, 1].map((rank) => cluster.output(job.id, { rank })));
  return outputs.flatMap((output, rank) =>
    output === expected ? [] : [`rank ${rank} has printed ${JSON.stringify(output)}`],
  );
}
