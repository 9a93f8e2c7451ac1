/**
 * A gang of four nodes on one machine: how long from the last node's *ready* to the first instruction of the program on
 * every node, and from a rank that dies to the moment when nothing of any rank is left. Floors of the same run: the same
 * four programs started, and ended, by Node itself.
 *
 *     node bench/gang.ts [rounds]
 *
 * The coordinator commits the last *checked* and the release at once, so the event `attempt.released` bears the moment of
 * both; its time is that of the commit's beginning, to the millisecond.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { MusterApi } from '@muster/common/wire/client';
import {
  type BenchCluster,
  quietMachine,
  report,
  reportMachine,
  startCluster,
  summary,
  untilEnded,
} from './support.ts';

const rounds = Number(process.argv[2] ?? 30);
const nodes = 4;
/** The rank that dies. */
const failing = 2;
const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-gang-'));

const nowMs = () => performance.timeOrigin + performance.now();
const stampOf = (round: string, rank: number) => join(scratch, `${round}.${rank}`);
const readStamp = (path: string) => Number(readFileSync(path, 'utf8')) * 1_000;

/** Writes the time as its first act. */
const firstInstruction = (round: string) => `exec date +%s.%N > ${scratch}/${round}.$MUSTER_NODE_RANK`;

/** Prints that it is there, and its pid; the failing rank dies on request, and prints when. */
const untilExit = (round: string) => `
  place=${scratch}/${round}.$MUSTER_NODE_RANK
  echo $$ > $place.part && mv $place.part $place
  [ $MUSTER_NODE_RANK = ${failing} ] || exec sleep 600
  until [ -e ${scratch}/${round}.go ]; do sleep 0.01; done
  date +%s.%N > ${scratch}/${round}.died.part && mv ${scratch}/${round}.died.part ${scratch}/${round}.died
  exit 1`;

async function submit(api: MusterApi, name: string, script: string): Promise<readonly string[]> {
  const spec = { name, command: ['/bin/sh', '-c', script], workdir: scratch, resources: { nodes } };
  const { jobIds } = await api.submit({
    specJson: JSON.stringify(spec),
    requestId: `${name}-${process.pid}`,
  });
  return jobIds;
}

async function releasedAtMs(api: MusterApi, jobId: string): Promise<number> {
  for await (const event of api.watchEvents({ sinceSeq: 0, follow: false, subject: jobId })) {
    if (event.kind === 'attempt.released') return event.timeMs;
  }
  throw new Error(`${jobId} was never released`);
}

async function untilTrue(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(1);
}

const ranks = Array.from({ length: nodes }, (_, rank) => rank);

async function startOf({ api }: BenchCluster, round: string): Promise<number> {
  const { lastEventSeq } = await api.getCluster();
  const jobIds = await submit(api, round, firstInstruction(round));
  if ((await untilEnded(api, jobIds, lastEventSeq)) > 0) throw new Error(`${jobIds.join()} did not succeed`);
  const readyAtMs = await releasedAtMs(api, jobIds[0] ?? '');
  return Math.max(...ranks.map((rank) => readStamp(stampOf(round, rank)))) - readyAtMs;
}

async function endOf({ api }: BenchCluster, round: string): Promise<number> {
  const { lastEventSeq } = await api.getCluster();
  const jobIds = await submit(api, round, untilExit(round));
  await untilTrue(() => ranks.every((rank) => existsSync(stampOf(round, rank))));
  const goneMs = await timeToGone(round, () => spawn('touch', [join(scratch, `${round}.go`)]));
  await untilEnded(api, jobIds, lastEventSeq);
  return goneMs;
}

/** From the death of the failing rank to that of the last. */
async function timeToGone(round: string, begin: () => void): Promise<number> {
  const pids = ranks.map((rank) => Number(readFileSync(stampOf(round, rank), 'utf8')));
  begin();
  await untilTrue(() => pids.every((pid) => !existsSync(`/proc/${pid}`)));
  const goneAtMs = nowMs();
  return goneAtMs - readStamp(join(scratch, `${round}.died`));
}

function spawnRanks(script: string): readonly ChildProcess[] {
  return ranks.map((rank) =>
    spawn('/bin/sh', ['-c', script], {
      env: { ...process.env, MUSTER_NODE_RANK: String(rank) },
      stdio: 'ignore',
      cwd: scratch,
    }),
  );
}

async function floorOfStart(round: string): Promise<number> {
  const beganMs = nowMs();
  const children = spawnRanks(firstInstruction(round));
  await Promise.all(children.map((child) => new Promise((resolve) => child.once('close', resolve))));
  return Math.max(...ranks.map((rank) => readStamp(stampOf(round, rank)))) - beganMs;
}

async function floorOfEnd(round: string): Promise<number> {
  const children = spawnRanks(untilExit(round));
  children[failing]?.once('exit', () => {
    for (const child of children) child.kill('SIGTERM');
  });
  await untilTrue(() => ranks.every((rank) => existsSync(stampOf(round, rank))));
  return timeToGone(round, () => spawn('touch', [join(scratch, `${round}.go`)]));
}

async function samples(name: string, one: (round: string) => Promise<number>): Promise<readonly number[]> {
  const taken: number[] = [];
  for (let round = 0; round < rounds; round += 1) taken.push(await one(`${name}-${round}`));
  return taken;
}

reportMachine();
const cluster = await startCluster(nodes, 0);
try {
  const busyPercent = await quietMachine();
  const figure = (name: string, taken: readonly number[], target?: string) =>
    report(name, {
      unit: 'ms',
      nodes,
      ...summary(taken),
      busyPercent,
      ...(target === undefined ? {} : { target }),
    });
  figure(
    'last ready to first instruction on all nodes',
    await samples('start', (round) => startOf(cluster, round)),
    'p50 < 50',
  );
  figure('floor: the same programs by Node', await samples('floor-start', floorOfStart));
  figure(
    'a rank dies to nothing left of any rank',
    await samples('end', (round) => endOf(cluster, round)),
    'p50 < 1000',
  );
  figure('floor: the same programs ended by Node', await samples('floor-end', floorOfEnd));
} finally {
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
}
