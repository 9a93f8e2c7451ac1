/**
 * How long lists of jobs take beside `node -e 0`, in turn with it: a cluster on which 10,000 jobs wait.
 *
 *     node bench/longList.ts [rounds] [jobs]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  commandMs,
  cpuMs,
  musterCommand,
  report,
  reportMachine,
  rounded,
  startCluster,
  summary,
} from './support.ts';

const [rounds = 20, jobs = 10_000] = process.argv.slice(2).map(Number);
const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-list-'));

interface Turns {
  readonly wallMs: number[];
  /** User and system time of all rounds. */
  cpuMs: number;
}

/** Runs a command and Node alone, one after the other. */
async function beside(args: readonly string[], env: NodeJS.ProcessEnv) {
  const turns = {
    command: { wallMs: [], cpuMs: 0 } as Turns,
    floor: { wallMs: [], cpuMs: 0 } as Turns,
  };
  async function take(turn: Turns, program: string, programArgs: readonly string[]): Promise<void> {
    const before = cpuMs(process.pid).children;
    turn.wallMs.push(await commandMs(program, programArgs, env, scratch));
    turn.cpuMs += cpuMs(process.pid).children - before;
  }
  for (let round = 0; round < rounds; round += 1) {
    await take(turns.command, musterCommand, args);
    await take(turns.floor, process.execPath, ['-e', '0']);
  }
  return turns;
}

reportMachine();
const cluster = await startCluster(1, 1);
try {
  const { api, env } = cluster;
  const { arrayId } = await api.submit({
    // No node has two GPUs, so all of them wait.
    specJson: JSON.stringify({ name: 'waits', command: ['true'], resources: { gpus: 2 }, workdir: scratch }),
    requestId: `list-${process.pid}`,
    arraySize: jobs,
  });
  if (arrayId === null) throw new Error('the array was submitted without an id');
  while ((await api.listJobs({ arrayId, limit: 1, brief: true })).notStored > 0) await delay(200);
  for (const args of [['jobs'], ['jobs', '--all']]) {
    const { command, floor } = await beside(args, env);
    const times = summary(command.wallMs);
    const floorTimes = summary(floor.wallMs);
    report(`muster ${args.join(' ')}, with ${jobs} jobs`, {
      unit: 'ms',
      ...times,
      cpu: rounded(command.cpuMs / rounds),
      timesNode: rounded((times['p50'] ?? 0) / (floorTimes['p50'] ?? 1)),
      timesNodeCpu: rounded(command.cpuMs / floor.cpuMs),
      target: args.length === 1 ? 'timesNode <= 4' : 'none',
    });
    report('floor: node -e 0', { unit: 'ms', ...floorTimes, cpu: rounded(floor.cpuMs / rounds) });
  }
} finally {
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
}
