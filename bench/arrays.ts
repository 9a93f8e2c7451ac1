/**
 * How long a heartbeat waits while somebody submits an array of 100,000 jobs, while these are stored, and while they are listed and
 * stopped, on an idle cluster of two nodes whose four GPUs the first jobs take. Floor of the same run: the same cluster with nothing
 * asked of it.
 *
 *     node bench/arrays.ts [jobs]
 */
import { setTimeout as delay } from 'node:timers/promises';
import { pings } from './pings.ts';
import {
  quietMachine,
  report,
  reportMachine,
  rounded,
  startCluster,
  summary,
  untilEnded,
} from './support.ts';

const jobs = Number(process.argv[2] ?? 100_000);
const spec = { name: 'array', command: ['/usr/bin/sleep', '3600'], resources: { gpus: 1 } };

reportMachine();
const cluster = await startCluster(2, 2);
const { api } = cluster;

async function figure<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
  const busyPercent = await quietMachine(10);
  let result: Result | undefined;
  let tookMs = 0;
  const waits = await pings(cluster, async () => {
    const startedMs = performance.now();
    result = await work();
    tookMs = performance.now() - startedMs;
    // What the work leaves behind to be done is part of its price.
    await delay(2_000);
  });
  report(name, {
    pingMs: summary(waits),
    tookMs: rounded(tookMs),
    busyPercent,
    target: 'pingMs.max < 200',
  });
  return result as Result;
}

async function untilStored(arrayId: string): Promise<void> {
  while ((await api.listJobs({ arrayId, limit: 1 })).notStored > 0) await delay(500);
}

try {
  await figure('floor: nothing asked', () => delay(4_000));
  const { arrayId } = await figure(`submit --array ${jobs}`, () =>
    api.submit({ specJson: JSON.stringify(spec), requestId: 'arrays', arraySize: jobs }),
  );
  if (arrayId === null) throw new Error('the coordinator took no array');
  await figure('its last job, by its index', () => api.getJob(`${arrayId}[${jobs - 1}]`));
  await figure('until all of its jobs are stored', () => untilStored(arrayId));
  await figure('jobs, a page of 1000', () => api.listJobs({ limit: 1_000 }));
  await figure('the array, one of its failed jobs', () =>
    api.listJobs({ arrayId, states: ['failed'], limit: 1 }),
  );
  const { jobIds } = await figure('a job submitted behind it', () =>
    api.submit({ specJson: JSON.stringify(spec), requestId: 'behind' }),
  );
  await figure(`stop the array of ${jobs}`, () => api.stopJobs([arrayId]));
  await api.stopJobs(jobIds);
  await untilEnded(api, jobIds, 0);
} finally {
  await cluster.stop();
}
