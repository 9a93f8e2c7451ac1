/**
 * How long until it runs: submit RPC → the task's first instruction on an idle local cluster, and a whole
 * `muster submit` call. Floors of the same run: starting a process from Node, and starting Node itself.
 *
 *     node bench/latency.ts [rounds]
 *
 * The task is a C-less minimum: `date` writes the wall clock, to the nanosecond, as its first and only act.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

reportMachine();
const cluster = await startCluster(1, 0);
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
    const submittedAtMs = performance.timeOrigin + performance.now();
    const { jobIds } = await api.submit({
      specJson: JSON.stringify(spec),
      requestId: `latency-${process.pid}-${round}`,
    });
    untilAnswer.push(performance.timeOrigin + performance.now() - submittedAtMs);
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
    target: 'p50 < 150',
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
