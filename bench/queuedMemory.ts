/**
 * Memory of a coordinator with queued jobs of 200 KB each, with a heap of 768 MB and no agent: after 1,000 jobs, after as many as one user
 * may queue, and after a restart with them. How long a stop of 300 of them takes, and how long another call waits meanwhile.
 *
 *     node bench/queuedMemory.ts [jobs]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectMuster } from '@muster/common/wire/client';
import { musterCommand, quietMachine, report, reportMachine, rounded } from './support.ts';

const jobs = Number(process.argv[2] ?? 1_000);
const heapMb = 768;
const dataDir = mkdtempSync(join(tmpdir(), 'muster-bench-'));
const connectionPath = join(dataDir, 'connection.json');

async function start() {
  rmSync(connectionPath, { force: true });
  const startedMs = performance.now();
  const args = ['coordinator', '--data', dataDir, '--listen', '127.0.0.1:0', '--http', 'off'];
  const env = { ...process.env, NODE_OPTIONS: `--max-old-space-size=${heapMb}` };
  const child = spawn(musterCommand, [...args, '--log-level', 'error'], { env, stdio: 'inherit' });
  while (!existsSync(connectionPath)) {
    if (child.exitCode !== null) throw new Error(`the coordinator ended with ${child.exitCode}`);
    await delay(20);
  }
  const tookMs = performance.now() - startedMs;
  const { addr } = JSON.parse(readFileSync(connectionPath, 'utf8')) as { addr: string };
  const token = readFileSync(join(dataDir, 'admin.token'), 'utf8').trim();
  return { child, tookMs, api: connectMuster({ address: addr, token }) };
}

function residentMb({ pid }: ChildProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return rounded(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024);
}

async function stop({ child, api }: Awaited<ReturnType<typeof start>>): Promise<void> {
  api.close();
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

const specJson = (number: number) =>
  JSON.stringify({
    name: `big-${number}`,
    command: 'true',
    env: { A: 'x'.repeat(100_000), B: 'y'.repeat(100_000) },
    resources: { gpus: 8 },
  });

reportMachine();
const busyPercent = await quietMachine(10);
let running = await start();
try {
  const ids: string[] = [];
  const submit = async () =>
    ids.push(
      ...(await running.api.submit({ specJson: specJson(ids.length), requestId: `r-${ids.length}` })).jobIds,
    );
  report('empty', { residentMb: residentMb(running.child) });
  while (ids.length < jobs) await submit();
  report(`${jobs} queued jobs of 200 KB`, {
    residentMb: residentMb(running.child),
    busyPercent,
    target: '< 300',
  });

  await stop(running);
  running = await start();
  report('restart with them', { tookMs: rounded(running.tookMs), residentMb: residentMb(running.child) });

  let slowestMs = 0;
  const stopping = { isOver: false };
  const pinging = (async () => {
    while (!stopping.isOver) {
      const startedMs = performance.now();
      await running.api.getCluster();
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    }
  })();
  const startedMs = performance.now();
  await running.api.stopJobs(ids.slice(0, 300), '', true);
  const tookMs = performance.now() - startedMs;
  stopping.isOver = true;
  await pinging;
  report('stop 300 of them', { tookMs: rounded(tookMs), slowestOtherCallMs: rounded(slowestMs) });

  let refusal: unknown = null;
  while (refusal === null && ids.length < 10_000) {
    try {
      await submit();
    } catch (error) {
      refusal = error;
    }
  }
  const { jobs: newest } = await running.api.listJobs({ limit: 1 });
  report('as many as one user may queue', {
    submitted: ids.length,
    residentMb: residentMb(running.child),
    refusal: String(refusal),
    newest: newest.length,
  });
  await stop(running);
  running = await start();
  report('restart with them', { tookMs: rounded(running.tookMs), residentMb: residentMb(running.child) });
} finally {
  await stop(running);
  rmSync(dataDir, { recursive: true, force: true });
}
