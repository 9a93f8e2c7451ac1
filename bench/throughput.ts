/**
 * How many jobs a second, and how much CPU time each takes by role of the process: `true` as an array, and as separate
 * submits over one connection, on a local cluster, from submit to the last one's end. Floors of the same run: the same
 * number of plain spawns from Node, and containers through the Docker Engine API where one answers. CPU time can be
 * compared while other programs run; jobs a second cannot.
 *
 *     node bench/throughput.ts [jobs] [rounds] [seconds to wait for a quiet machine]
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { MusterApi } from '@muster/common/wire/client';
import { ensureTestImage } from '../test/support/images.ts';
import {
  cpuByRole,
  cpuMs,
  cpuPerJob,
  quietMachine,
  report,
  reportMachine,
  rounded,
  startCluster,
  summary,
  untilEnded,
} from './support.ts';

const jobs = Number(process.argv[2] ?? 1_000);
const rounds = Number(process.argv[3] ?? 3);
const secondsToQuiet = Number(process.argv[4] ?? 60);
const dockerSocket = '/var/run/docker.sock';
const settleMs = 1_500;

/** Runs `work` `count` times, `inFlight` at once. @returns how many a second */
async function rate(count: number, inFlight: number, work: () => Promise<void>): Promise<number> {
  let left = count;
  const startedMs = performance.now();
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await work();
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return (count * 1_000) / (performance.now() - startedMs);
}

function spawnTrue(): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/true', { stdio: 'ignore' });
    child.once('error', reject);
    child.once('close', () => resolve());
  });
}

function engine(method: string, path: string, body?: object): Promise<{ Id?: string; StatusCode?: number }> {
  return new Promise((resolve, reject) => {
    const call = request(
      { socketPath: dockerSocket, method, path, headers: { 'content-type': 'application/json' } },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on('end', () => resolve(text === '' ? {} : (JSON.parse(text) as object)));
      },
    );
    call.once('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function runContainer(image: string): Promise<void> {
  const { Id } = await engine('POST', '/v1.41/containers/create', {
    Image: image,
    Cmd: ['true'],
    HostConfig: { NetworkMode: 'host' },
  });
  const ended = engine('POST', `/v1.41/containers/${Id}/wait?condition=next-exit`);
  await engine('POST', `/v1.41/containers/${Id}/start`);
  await ended;
  await engine('DELETE', `/v1.41/containers/${Id}`);
}

/** The sum of what spawning takes in a program that does nothing else, and of what the spawned program takes. */
async function spawnFloor(inFlight: number): Promise<number> {
  const before = cpuMs(process.pid);
  const perSecond = await rate(jobs, inFlight, spawnTrue);
  const after = cpuMs(process.pid);
  const spawning = rounded((after.own - before.own) / jobs);
  const tasks = rounded((after.children - before.children) / jobs);
  const all = rounded(spawning + tasks);
  report(`floor: spawn of /bin/true from Node, ${inFlight} in flight`, {
    unit: 'per s',
    value: rounded(perSecond),
    cpuMsPerSpawn: { spawning, tasks, all },
  });
  return all;
}

const specJson = JSON.stringify({ name: 'throughput', command: ['true'], workdir: '/' });

/** The two ways to submit. Each resolves with the ids once all are acknowledged. */
const submitters: Readonly<
  Record<string, (api: MusterApi, requestId: string) => Promise<readonly string[]>>
> = {
  [`array of ${jobs} x true`]: async (api, requestId) =>
    (await api.submit({ specJson, requestId, arraySize: jobs })).jobIds,
  [`${jobs} separate submits of true over one connection`]: async (api, requestId) => {
    const all = Array.from({ length: jobs }, (_, index) =>
      api.submit({ specJson, requestId: `${requestId}-${index}` }),
    );
    return (await Promise.all(all)).flatMap(({ jobIds }) => jobIds);
  },
};

reportMachine();
await quietMachine(secondsToQuiet);
const floorMs = await spawnFloor(1);
await spawnFloor(4);
const cluster = await startCluster(2, 0);
try {
  const { api } = cluster;
  for (const [index, [how, submit]] of Object.entries(submitters).entries()) {
    const perSecond: number[] = [];
    const busyPercents: number[] = [];
    const cpu: ReturnType<typeof cpuPerJob>[] = [];
    for (let round = 0; round < rounds; round += 1) {
      busyPercents.push(await quietMachine(secondsToQuiet));
      const { lastEventSeq } = await api.getCluster();
      const before = cpuByRole(cluster);
      const startedMs = performance.now();
      const jobIds = await submit(api, `throughput-${process.pid}-${index}-${round}`);
      const failed = await untilEnded(api, jobIds, lastEventSeq);
      if (failed > 0) throw new Error(`${failed} of ${jobs} jobs did not succeed`);
      perSecond.push((jobs * 1_000) / (performance.now() - startedMs));
      // What follows an end, such as the removal of the task's directory, belongs to the job as well.
      await delay(settleMs);
      cpu.push(cpuPerJob(before, cpuByRole(cluster), jobs));
    }
    report(`${how}, 2 nodes, submit to last end`, {
      unit: 'jobs/s',
      ...summary(perSecond),
      busyPercents,
      target: '>= 150',
    });
    report(`${how}, CPU time of a job`, {
      unit: 'ms',
      rounds: cpu,
      beyondSpawn: summary(cpu.map(({ all }) => all - floorMs)),
      target: 'beyond the spawn of a program <= 8',
    });
  }

  if (existsSync(dockerSocket)) {
    const image = await ensureTestImage();
    const floor = await rate(100, 4, () => runContainer(image));
    report('floor: container of `true` by the Engine API, 4 in flight', {
      unit: 'per s',
      value: rounded(floor),
    });
  } else {
    report('floor: container of `true` by the Engine API', {
      unit: 'per s',
      value: null,
      reason: `${dockerSocket} is not there`,
    });
  }
} finally {
  await cluster.stop();
}
