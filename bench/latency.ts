/**
 * How long until it runs: submit RPC → the task's first instruction on an idle local cluster, and a whole
 * `muster submit` call. How long until it ends: stop RPC, or submit RPC of a job that preempts it → the handler of its stop signal.
 * Floors of the same run: starting a process from Node, and starting Node itself.
 *
 *     node bench/latency.ts [rounds]
 *
 * The task is a C-less minimum: `date` writes the wall clock, to the nanosecond, as its first and only act.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { MusterApi } from '@muster/common/wire/client';
import {
  musterCommand,
  quietMachine,
  report,
  reportMachine,
  startCluster,
  summary,
  untilEnded,
} from './support.ts';

const rounds = Number(process.argv[2] ?? 50);
const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-latency-'));

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: 'ignore' });
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${command} exited with ${code}`)),
    );
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Starts a job that holds the GPU, writes the time when it is asked to stop, and ends. */
async function hold(api: MusterApi, stamp: string): Promise<string> {
  const { jobIds } = await api.submit({
    specJson: JSON.stringify({
      name: 'held',
      command: [
        '/bin/sh',
        '-c',
        `trap 'date +%s.%N > ${stamp}; exit' TERM; : > ${stamp}.ready; sleep 1000 & wait`,
      ],
      workdir: scratch,
      resources: { gpus: 1 },
      preemptible: true,
      priority: 10,
    }),
    requestId: `held-${process.pid}-${stamp}`,
  });
  while (!existsSync(`${stamp}.ready`)) await delay(5);
  return jobIds[0] ?? '';
}

/**
 * @param end makes the coordinator end the job; gets its id
 * @returns until the job handles its stop signal, in ms
 */
async function untilSignal(
  api: MusterApi,
  stamp: string,
  end: (jobId: string) => Promise<readonly string[]>,
): Promise<number> {
  const { lastEventSeq } = await api.getCluster();
  const jobId = await hold(api, stamp);
  const startedAtMs = nowMs();
  const others = await end(jobId);
  await untilEnded(api, others, lastEventSeq);
  while (!existsSync(stamp) || readFileSync(stamp, 'utf8') === '') await delay(5);
  // A preempted job would wait in the queue, and run again.
  await api.stopJobs([jobId]);
  await untilEnded(api, [jobId], lastEventSeq);
  return Number(readFileSync(stamp, 'utf8')) * 1_000 - startedAtMs;
}

reportMachine();
const cluster = await startCluster(1, 1);
try {
  const { api, env } = cluster;
  const busyPercent = await quietMachine();

  const untilInstruction: number[] = [];
  const untilAnswer: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const stamp = join(scratch, `stamp-${round}`);
    const spec = {
      name: 'latency',
      command: ['/bin/sh', '-c', `exec date +%s.%N > ${stamp}`],
      workdir: scratch,
    };
    const { lastEventSeq } = await api.getCluster();
    const submittedAtMs = nowMs();
    const { jobIds } = await api.submit({
      specJson: JSON.stringify(spec),
      requestId: `latency-${process.pid}-${round}`,
    });
    untilAnswer.push(nowMs() - submittedAtMs);
    await untilEnded(api, jobIds, lastEventSeq);
    untilInstruction.push(Number(readFileSync(stamp, 'utf8')) * 1_000 - submittedAtMs);
  }
  report('submit RPC to first instruction', {
    unit: 'ms',
    ...summary(untilInstruction),
    busyPercent,
    target: 'p50 < 50',
  });
  report('submit RPC to its answer', { unit: 'ms', ...summary(untilAnswer), busyPercent });

  const commandMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    commandMs.push(await timed(() => run(musterCommand, ['submit', '--', 'true'], env)));
  }
  report('whole `muster submit -- true` call', {
    unit: 'ms',
    ...summary(commandMs),
    busyPercent,
    target: 'p50 <= 2.5 x node -e 0',
  });

  const stopped: number[] = [];
  const preempted: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    stopped.push(
      await untilSignal(api, join(scratch, `stopped-${round}`), async (jobId) => {
        await api.stopJobs([jobId]);
        return [jobId];
      }),
    );
    preempted.push(
      await untilSignal(api, join(scratch, `preempted-${round}`), async () => {
        const { jobIds } = await api.submit({
          specJson: JSON.stringify({
            name: 'preemptor',
            command: ['true'],
            workdir: scratch,
            resources: { gpus: 1 },
            priority: 90,
          }),
          requestId: `preemptor-${process.pid}-${round}`,
        });
        return jobIds;
      }),
    );
  }
  report('stop RPC to the handler of the signal', { unit: 'ms', ...summary(stopped), busyPercent });
  report('submit RPC of a preemptor to the handler of the signal', {
    unit: 'ms',
    ...summary(preempted),
    busyPercent,
  });

  const floors: readonly (readonly [string, string, readonly string[]])[] = [
    ['floor: spawn of /bin/true from Node', '/bin/true', []],
    ['floor: `node -e 0`', process.execPath, ['-e', '0']],
  ];
  for (const [figure, command, args] of floors) {
    const samples: number[] = [];
    for (let round = 0; round < rounds; round += 1) samples.push(await timed(() => run(command, args, env)));
    report(figure, { unit: 'ms', ...summary(samples), busyPercent });
  }
} finally {
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
}
