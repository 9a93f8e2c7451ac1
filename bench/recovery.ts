/**
 * What a preemption and a failure cost in time, on one machine: from a checkpoint that is complete until the GPUs are released
 * for the waiting job, and from the kill of a rank to the first instruction of every rank of the attempt that resumes from the
 * checkpoint. Floors of the same run: the same programs ended and started again by Node itself.
 *
 *     node bench/recovery.ts [rounds]
 *
 * The wait before a retry (`retry.backoff`, 2 s by default) is part of the second figure, and reported beside it.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { JobView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import {
  quietMachine,
  report,
  reportMachine,
  rounded,
  startCluster,
  summary,
  untilEnded,
} from './support.ts';

const rounds = Number(process.argv[2] ?? 20);
const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-recovery-'));
const defaultBackoffMs = 2_000;

const readStamp = (path: string) => Number(readFileSync(path, 'utf8')) * 1_000;

async function untilTrue(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(1);
}

/** Saves at once and again when it is asked to stop, prints when that was complete, and stays. */
const lingering = (place: string) => `
  save() { printf '{"step": %s}' $1 > ${place}/step-$1.json.tmp && mv ${place}/step-$1.json.tmp ${place}/step-$1.json; }
  trap 'save 2; date +%s.%N > ${place}/saved.part; mv ${place}/saved.part ${place}/saved' TERM
  save 1
  while :; do sleep 0.05; done`;

const stampFirst = (path: string) => `date +%s.%N > ${path}.part && mv ${path}.part ${path}`;

/** Prints when it begins; saves; the first attempt then waits to be killed. */
const dying = (place: string) => `
  stamp=${place}/$MUSTER_ATTEMPT.$MUSTER_NODE_RANK
  date +%s.%N > $stamp.part && mv $stamp.part $stamp
  [ $MUSTER_ATTEMPT = 1 ] || { [ -n "$MUSTER_RESUME_FROM" ] || exit 9; exit 0; }
  if [ $MUSTER_NODE_RANK = 0 ]; then
    printf '{"step": 1}' > ${place}/step-1.json.tmp && mv ${place}/step-1.json.tmp ${place}/step-1.json
  fi
  echo $$ > ${place}/pid.$MUSTER_NODE_RANK.part && mv ${place}/pid.$MUSTER_NODE_RANK.part ${place}/pid.$MUSTER_NODE_RANK
  exec sleep 600`;

function placeFor(round: string): string {
  const place = join(scratch, round);
  mkdirSync(place);
  return place;
}

async function submit(
  api: MusterApi,
  name: string,
  spec: Readonly<Record<string, unknown>>,
): Promise<string> {
  const specJson = JSON.stringify({ name, workdir: scratch, ...spec });
  const { jobIds } = await api.submit({ specJson, requestId: `${name}-${process.pid}` });
  return jobIds[0] ?? '';
}

async function untilJob(api: MusterApi, jobId: string, holds: (job: JobView) => boolean): Promise<void> {
  while (!holds(await api.getJob(jobId))) await delay(20);
}

/** @returns from the checkpoint being complete: to the place being free, and to the preemptor's first instruction */
async function preempt(api: MusterApi, round: string): Promise<readonly [number, number]> {
  const place = placeFor(round);
  const jobId = await submit(api, round, {
    command: ['/bin/sh', '-c', lingering(place)],
    resources: { nodes: 1, gpus: 1 },
    preemptible: true,
    priority: 10,
    stop_grace: '10m',
    checkpoint: { dir: place },
  });
  await untilJob(api, jobId, ({ checkpoints }) => checkpoints.some(({ verdict }) => verdict === 'verified'));
  const preemptor = await submit(api, `${round}-preemptor`, {
    command: ['/bin/sh', '-c', `${stampFirst(join(place, 'began'))}; exec sleep 1`],
    resources: { nodes: 1, gpus: 1 },
    priority: 90,
  });
  await untilTrue(() => existsSync(join(place, 'began')));
  const savedAtMs = readStamp(join(place, 'saved'));
  const beganAtMs = readStamp(join(place, 'began'));
  const job = await api.getJob(jobId);
  const freeAtMs = job.attempts[0]?.endedAtMs ?? Number.NaN;
  const { lastEventSeq } = await api.getCluster();
  await api.stopJobs([jobId, preemptor]);
  await untilEnded(api, [jobId, preemptor], Math.max(0, lastEventSeq - 50));
  return [freeAtMs - savedAtMs, beganAtMs - savedAtMs];
}

/** @returns from the death of a rank to the first instruction of all ranks of the next attempt */
async function dieAndGoOn(api: MusterApi, round: string): Promise<number> {
  const place = placeFor(round);
  const { lastEventSeq } = await api.getCluster();
  const jobId = await submit(api, round, {
    command: ['/bin/sh', '-c', dying(place)],
    resources: { nodes: 2 },
    retry: { on: ['exit_code'] },
    checkpoint: { dir: place },
    stop_grace: '1s',
  });
  await untilJob(api, jobId, ({ checkpoints }) => checkpoints.some(({ verdict }) => verdict === 'verified'));
  await untilTrue(() => existsSync(join(place, 'pid.1')) && existsSync(join(place, 'pid.0')));
  const killedAtMs = performance.timeOrigin + performance.now();
  process.kill(Number(readFileSync(join(place, 'pid.1'), 'utf8')), 'SIGKILL');
  if ((await untilEnded(api, [jobId], lastEventSeq)) > 0) throw new Error(`${jobId} did not succeed`);
  return Math.max(readStamp(join(place, '2.0')), readStamp(join(place, '2.1'))) - killedAtMs;
}

/** The same two ranks: one is killed, the other ended, both started again. */
async function floorOfDying(round: string): Promise<number> {
  const place = placeFor(round);
  const start = (attempt: number, rank: number) =>
    spawn('/bin/sh', ['-c', dying(place)], {
      env: {
        ...process.env,
        MUSTER_ATTEMPT: String(attempt),
        MUSTER_NODE_RANK: String(rank),
        MUSTER_RESUME_FROM: join(place, 'step-1.json'),
      },
      stdio: 'ignore',
    });
  const first = [start(1, 0), start(1, 1)];
  await untilTrue(() => existsSync(join(place, 'pid.1')) && existsSync(join(place, 'pid.0')));
  const killedAtMs = performance.timeOrigin + performance.now();
  const ended = first.map((child) => new Promise((resolve) => child.once('exit', resolve)));
  first[1]?.once('exit', () => first[0]?.kill('SIGTERM'));
  first[1]?.kill('SIGKILL');
  await Promise.all(ended);
  const second = [start(2, 0), start(2, 1)];
  await Promise.all(second.map((child) => new Promise((resolve) => child.once('close', resolve))));
  return Math.max(readStamp(join(place, '2.0')), readStamp(join(place, '2.1'))) - killedAtMs;
}

async function samples<T>(name: string, one: (round: string) => Promise<T>): Promise<readonly T[]> {
  const taken: T[] = [];
  for (let round = 0; round < rounds; round += 1) taken.push(await one(`${name}-${round}`));
  return taken;
}

reportMachine();
const cluster = await startCluster(2, 1);
try {
  const { api } = cluster;
  await api.drainNode('node-2', 'one place to fight for', null);
  const busyPercent = await quietMachine();
  const preemptions = await samples('preemption', (round) => preempt(api, round));
  const unit = 'ms';
  report('checkpoint complete to place free', {
    unit,
    ...summary(preemptions.map(([free]) => free)),
    busyPercent,
    target: 'p50 < 1000',
  });
  report('checkpoint complete to first instruction of the job that wanted the place', {
    unit,
    ...summary(preemptions.map(([, began]) => began)),
    busyPercent,
  });
  await api.undrainNode('node-2');
  const failures = await samples('death', (round) => dieAndGoOn(api, round));
  report('a rank is killed to first instruction of all ranks from the checkpoint', {
    unit,
    ...summary(failures),
    busyPercent,
    target: 'p50 < 3000',

    ofThatBackoffMs: defaultBackoffMs,
    p50WithoutBackoff: rounded((summary(failures)['p50'] ?? 0) - defaultBackoffMs),
  });
  report('floor: the same ranks ended and started by Node', {
    unit,
    ...summary(await samples('floor', floorOfDying)),
    busyPercent,
  });
} finally {
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
}
