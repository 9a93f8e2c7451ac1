/**
 * What the API over HTTP costs beside gRPC: a call with one answer on a kept connection, from the commit of an event to a client of
 * server-sent events, and 200 of these clients at 500 events a second.
 *
 *     node bench/http.ts [calls] [seconds]
 */
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuMs, quietMachine, report, reportMachine, rounded, startCluster, summary } from './support.ts';

const calls = Number(process.argv[2] ?? 2_000);
const seconds = Number(process.argv[3] ?? 10);
const watchersCount = 200;
const eventsPerSecond = 500;
/** Calls before those that count: compiled code and open connections are what a program has. */
const warmUpCalls = 500;

reportMachine();
report('busy before', { percent: await quietMachine() });
const cluster = await startCluster(1, 0);
const { api, token } = cluster;
const dataDir = cluster.env['MUSTER_DATA'] ?? '';
const { api: url } = JSON.parse(readFileSync(join(dataDir, 'connection.json'), 'utf8')) as {
  readonly api: string;
};
const headers = { authorization: `Bearer ${token}` };
const kept = new Agent({ keepAlive: true, maxSockets: 1 });
const each = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });

function answerOf(path: string): Promise<object> {
  return new Promise((resolve, reject) => {
    get(`${url}/api/v1${path}`, { headers, agent: kept }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => resolve(JSON.parse(text) as object));
    }).on('error', reject);
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** Follows events from now on. @returns once it does */
function watch(onChunk: (text: string) => void): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/api/v1/events/stream?sinceSeq=-1`, { headers, agent: each }, (answer) => {
      answer.setEncoding('utf8');
      answer.on('data', onChunk);
      answer.on('error', () => {});
      resolve(() => request.destroy());
    });
    request.on('error', reject);
  });
}

let isPrivate = false;
/** One commit with one event. */
async function commitEvent(): Promise<void> {
  isPrivate = !isPrivate;
  await api.setProject({ name: 'bench', isPrivate });
}

try {
  const { jobIds } = await api.submit({
    specJson: JSON.stringify({ name: 'bench', command: ['true'] }),
    requestId: 'bench',
  });
  const [jobId = ''] = jobIds;
  const pairs = [
    ['GetCluster', () => api.getCluster(), '/cluster'],
    ['GetJob', () => api.getJob(jobId), `/jobs/${jobId}`],
  ] as const;
  for (const [name, overGrpc, path] of pairs) {
    const grpc: number[] = [];
    const http: number[] = [];
    for (let call = 0; call < warmUpCalls + calls; call += 1) {
      const grpcMs = await timed(overGrpc);
      const httpMs = await timed(() => answerOf(path));
      if (call < warmUpCalls) continue;
      grpc.push(grpcMs);
      http.push(httpMs);
    }
    const [byGrpc, byHttp] = [summary(grpc), summary(http)];
    report(`${name} over gRPC`, byGrpc);
    report(`${name} over HTTP`, {
      ...byHttp,
      ofGrpc: rounded((byHttp['p50'] ?? 0) / (byGrpc['p50'] ?? 1)),
      target: '<= 1.2 x gRPC',
    });
  }

  const delays: number[] = [];
  const stop = await watch((text) => {
    const nowMs = performance.timeOrigin + performance.now();
    for (const [, time = ''] of text.matchAll(/"time":"([^"]+)"/g)) delays.push(nowMs - Date.parse(time));
  });
  for (let event = 0; event < 300; event += 1) {
    await commitEvent();
    await delay(5);
  }
  await delay(200);
  stop();
  report('time of an event, in whole milliseconds, to its arrival at a watcher', {
    ...summary(delays),
    target: 'p50 < 5',
  });

  const received: number[] = [];
  /** What the last of them gets. */
  let onLast = (_text: string) => {};
  const stops: (() => void)[] = [];
  for (let watcher = 0; watcher < watchersCount; watcher += 1) {
    received[watcher] = 0;
    // An event may be cut anywhere.
    let tail = '\n';
    stops.push(
      await watch((text) => {
        if (watcher === watchersCount - 1) onLast(text);
        const joined = `${tail}${text}`;
        received[watcher] = (received[watcher] ?? 0) + joined.split('\nid: ').length - 1;
        tail = joined.slice(-4);
      }),
    );
  }
  const [pid = 0] = cluster.pids('coordinator');
  const lonely = cpuMs(pid).own;
  const arrivals: number[] = [];
  onLast = (text) => {
    const nowMs = performance.timeOrigin + performance.now();
    for (const [, time = ''] of text.matchAll(/"time":"([^"]+)"/g)) arrivals.push(nowMs - Date.parse(time));
  };
  for (let event = 0; event < 300; event += 1) {
    await commitEvent();
    await delay(20);
  }
  await delay(200);
  onLast = () => {};
  report(`the same at the last of ${watchersCount} watchers that are told`, {
    ...summary(arrivals),
    cpuMsOfCoordinatorPerEvent: rounded((cpuMs(pid).own - lonely) / 300),
    target: 'p50 < 5',
  });
  const before = cpuMs(pid).own;
  const startedMs = performance.now();
  let sent = 0;
  while (performance.now() - startedMs < seconds * 1_000) {
    const due = Math.min(50, Math.floor(((performance.now() - startedMs) / 1_000) * eventsPerSecond) - sent);
    if (due > 0) await Promise.all(Array.from({ length: due }, commitEvent));
    sent += Math.max(0, due);
    await delay(2);
  }
  const tookMs = performance.now() - startedMs;
  await delay(1_000);
  report(`${watchersCount} watchers at ${eventsPerSecond} events a second`, {
    sent,
    perSecond: rounded((sent * 1_000) / tookMs),
    receivedByEach: [Math.min(...received), Math.max(...received)],
    coresOfCoordinator: rounded((cpuMs(pid).own - before) / tookMs),
    target: '< 1 core',
  });
  for (const end of stops) end();
} finally {
  kept.destroy();
  await cluster.stop();
}
