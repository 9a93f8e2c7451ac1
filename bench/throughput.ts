/**
 * How many jobs a second: an array of `true` on a local cluster, from submit to the last one's end. Floors of the same
 * run: the same number of plain spawns from Node, and containers through the Docker Engine API where one answers.
 *
 *     node bench/throughput.ts [jobs] [rounds]
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { ensureTestImage } from '../test/support/images.ts';
import {
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
const dockerSocket = '/var/run/docker.sock';

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

reportMachine();
const cluster = await startCluster(2, 0);
try {
  const { api } = cluster;
  const perSecond: number[] = [];
  const busyPercents: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    busyPercents.push(await quietMachine());
    const { lastEventSeq } = await api.getCluster();
    const spec = { name: 'throughput', command: ['true'], workdir: '/' };
    const startedMs = performance.now();
    const { jobIds } = await api.submit({
      specJson: JSON.stringify(spec),
      requestId: `throughput-${process.pid}-${round}`,
      arraySize: jobs,
    });
    const failed = await untilEnded(api, jobIds, lastEventSeq);
    if (failed > 0) throw new Error(`${failed} of ${jobs} jobs did not succeed`);
    perSecond.push((jobs * 1_000) / (performance.now() - startedMs));
  }
  report(`array of ${jobs} x true, 2 nodes, submit to last end`, {
    unit: 'jobs/s',
    ...summary(perSecond),
    busyPercents,
    target: '>= 150',
  });

  await quietMachine();
  for (const inFlight of [1, 4]) {
    const floor = await rate(jobs, inFlight, spawnTrue);
    report(`floor: spawn of /bin/true from Node, ${inFlight} in flight`, {
      unit: 'per s',
      value: rounded(floor),
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
