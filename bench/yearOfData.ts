/**
 * What a coordinator is like after a year: its start, its memory, and how long a heartbeat waits while somebody looks things up in
 * a store of 1,000,000 ended jobs and 10,000,000 events. Floor of the same run: the same coordinator on an empty store.
 *
 *     node bench/yearOfData.ts [--rows JOBS] [--starts N] [--keep DIRECTORY]
 *
 * Needs some 8 GB in the temporary folder for 1,000,000 jobs; with --keep, DIRECTORY is used again if it holds a store, and stays.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { pings } from './pings.ts';
import { musterCommand, quietMachine, report, reportMachine, rounded, summary } from './support.ts';
import {
  commonLabel,
  commonName,
  commonProject,
  idOfJob,
  makeYearStore,
  rareLabel,
  rareName,
  rareProject,
} from './yearStore.ts';

interface Server {
  readonly api: MusterApi;
  readonly address: string;
  readonly token: string;
  readonly pid: number;
  /** From spawning the process to its first answer. */
  readonly servesAfterMs: number;
  stop(): Promise<void>;
}

/** For a quiet machine, before each figure. */
const waitS = 3;

async function start(dataDir: string, flags: readonly string[] = []): Promise<Server> {
  const connectionFile = join(dataDir, 'connection.json');
  rmSync(connectionFile, { force: true });
  const env: NodeJS.ProcessEnv = { ...process.env };
  delete env['NODE_EXTRA_CA_CERTS'];
  const quiet = ['--listen', '127.0.0.1:0', '--http', 'off', '--log-level', 'warn'];
  const args = ['coordinator', '--data', dataDir, ...quiet, ...flags];
  const startedMs = performance.now();
  const child = spawn(musterCommand, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  while (!existsSync(connectionFile)) {
    if (child.exitCode !== null) throw new Error(`the coordinator ended with ${child.exitCode}`);
    await delay(5);
  }
  const { addr: address } = JSON.parse(readFileSync(connectionFile, 'utf8')) as { addr: string };
  const token = readFileSync(join(dataDir, 'admin.token'), 'utf8').trim();
  const api = connectMuster({ address, token });
  await api.getCluster();
  const servesAfterMs = performance.now() - startedMs;
  return {
    api,
    address,
    token,
    pid: child.pid ?? 0,
    servesAfterMs,
    async stop() {
      api.close();
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** @param key `VmRSS`: now; `VmHWM`: the most so far */
function memoryMib(pid: number, key: 'VmRSS' | 'VmHWM'): number {
  const kib = new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return rounded(Number(kib) / 1024);
}

/** @param staysMs the memory is looked at again after that */
async function reportStart(figure: string, dataDir: string, staysMs: number): Promise<void> {
  const busyPercent = await quietMachine(waitS);
  const server = await start(dataDir);
  const atStart = memoryMib(server.pid, 'VmRSS');
  await delay(staysMs);
  report(figure, {
    servesAfterMs: rounded(server.servesAfterMs),
    rssAtStartMib: atStart,
    staysMs,
    rssThenMib: memoryMib(server.pid, 'VmRSS'),
    rssMostMib: memoryMib(server.pid, 'VmHWM'),
    busyPercent,
    target: 'servesAfterMs < 2000, rss < 200',
  });
  await server.stop();
}

/** Takes a file out of the page cache: the start after a reboot. */
function forgetCached(path: string): void {
  spawnSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none']);
}

async function reportDelays(
  figure: string,
  server: Server,
  work: (() => Promise<unknown>) | null,
): Promise<void> {
  const busyPercent = await quietMachine(waitS);
  const own: number[] = [];
  const took = await pings(server, async () => {
    const endMs = performance.now() + 4_000;
    while (performance.now() < endMs) {
      const startedMs = performance.now();
      if (work === null) await delay(100);
      else await work();
      own.push(performance.now() - startedMs);
      await delay(20);
    }
  });
  report(figure, {
    pingMs: summary(took),
    ...(work === null ? {} : { ownMs: summary(own) }),
    busyPercent,
    target: 'pingMs.max < 200',
  });
}

async function readEvents(api: MusterApi, count: number): Promise<void> {
  const abort = new AbortController();
  let seen = 0;
  for await (const _event of api.watchEvents({ sinceSeq: 0, follow: false }, abort.signal)) {
    seen += 1;
    if (seen === count) break;
  }
  abort.abort();
}

/** Of filters that match a part of the jobs each and hardly any together: the most that a list can cost. */
function severalFilters(api: MusterApi): readonly (readonly [string, () => Promise<unknown>])[] {
  const sinceMs = Date.now() - 480 * 3_600_000;
  // Every tenth job failed, and all of these are of the common project.
  const lists: readonly (readonly [string, Parameters<MusterApi['listJobs']>[0]])[] = [
    ['--project and --state, a state that none has', { project: commonProject, states: ['cancelled'] }],
    ['--project and --state, each of thousands', { project: 'project-1', states: ['failed'] }],
    ['--project and --name, each of thousands', { project: 'project-1', name: commonName }],
    ['--user, --project and --state', { user: 'admin', project: 'project-1', states: ['failed'] }],
    ['--label and --project, each of thousands', { label: 'team=project-1', project: commonProject }],
    ['--label and --state, each of thousands', { label: 'team=project-1', states: ['failed'] }],
    ['--label without a value and --name of one', { label: 'team', name: rareName }],
    ['--since 480h and --state, a state that none has', { sinceMs, states: ['cancelled'] }],
    ['--since 480h and --name of one', { sinceMs, name: rareName }],
  ];
  return lists.map(([figure, query]) => [`jobs ${figure}`, () => api.listJobs(query)]);
}

async function reportLookUps(dataDir: string, jobs: number): Promise<void> {
  const server = await start(dataDir);
  const { api } = server;
  // The oldest tenth is no longer there in a directory that was kept: retention removes it below.
  const someId = () => idOfJob(Math.ceil(jobs * (0.2 + 0.8 * Math.random())));
  const lookUps: readonly (readonly [string, (() => Promise<unknown>) | null])[] = [
    ['nothing beside the comparison of pages', null],
    [`jobs --name, a name that half of all have`, () => api.listJobs({ name: commonName })],
    ['jobs --name, a name that one has', () => api.listJobs({ name: rareName })],
    ['jobs --name, a name that nobody has', () => api.listJobs({ name: 'nobody' })],
    ['jobs --name, deep in the list', () => api.listJobs({ name: commonName, beforeSubmitSeq: jobs >> 1 })],
    ['jobs --state failed', () => api.listJobs({ states: ['failed'] })],
    ['jobs --project, that of half of all', () => api.listJobs({ project: commonProject })],
    ['jobs --project, that of one', () => api.listJobs({ project: rareProject })],
    ['jobs --label, that of half of all', () => api.listJobs({ label: commonLabel })],
    ['jobs --label, that of one', () => api.listJobs({ label: rareLabel })],
    ['jobs --since 1h', () => api.listJobs({ sinceMs: Date.now() - 3_600_000 })],
    ['jobs --since 480h', () => api.listJobs({ sinceMs: Date.now() - 480 * 3_600_000 })],
    ['floor of several filters: one of them alone', () => api.listJobs({ user: 'admin' })],
    ...severalFilters(api),
    ['jobs --all, first page of 1000', () => api.listJobs({ limit: 1_000 })],
    ['job ID', () => api.getJob(someId())],
    ['job, the beginning of an id', () => api.getJob(someId().slice(0, 14))],
    ['explain ID', () => api.explainJob(someId())],
    ['100000 events from the oldest', () => readEvents(api, 100_000)],
  ];
  for (const [figure, work] of lookUps) await reportDelays(figure, server, work);
  await server.stop();
}

/** A tenth of the jobs and two thirds of the events are too old or too many. */
async function reportRetention(dataDir: string, jobs: number): Promise<void> {
  const server = await start(dataDir, [
    '--keep-events',
    '7d',
    '--keep-jobs-max',
    String(Math.ceil(jobs * 0.9)),
  ]);
  const busyPercent = await quietMachine(waitS);
  const took = await pings(server, () => delay(100_000));
  report('retention at work, from its first minute', {
    pingMs: summary(took),
    rssMib: memoryMib(server.pid, 'VmRSS'),
    busyPercent,
    target: 'pingMs.max < 200',
  });
  await server.stop();
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rows: { type: 'string', default: '1000000' },
      starts: { type: 'string', default: '3' },
      keep: { type: 'string' },
    },
  });
  const jobs = Number(values.rows);
  const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-year-'));
  const dataDir = values.keep ?? join(scratch, 'full');
  const empty = join(scratch, 'empty');
  reportMachine();
  try {
    if (!existsSync(join(dataDir, 'cluster.json'))) {
      const startedMs = performance.now();
      mkdirSync(dataDir, { recursive: true, mode: 0o700 });
      await makeYearStore(dataDir, jobs, Date.now());
      report('the store', { jobs, madeInS: rounded((performance.now() - startedMs) / 1_000) });
    }
    const database = join(dataDir, 'muster.db');
    report('its database', { mib: rounded(statSync(database).size / 1024 ** 2) });
    await reportStart('floor: the first start, of an empty store', empty, 0);
    for (let round = 1; round <= Number(values.starts); round += 1) {
      const staysMs = round === Number(values.starts) ? 30_000 : 0;
      await reportStart('floor: a start on an empty store', empty, staysMs);
      await reportStart('a start', dataDir, staysMs);
      forgetCached(database);
      await reportStart('a start, nothing of the store in the page cache', dataDir, 0);
    }
    await reportLookUps(dataDir, jobs);
    await reportRetention(dataDir, jobs);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

await main();
