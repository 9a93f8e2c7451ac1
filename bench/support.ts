/** Shared by the bench programs: a cluster of the built CLI, a quiet machine, percentiles, one JSON line per figure. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { availableParallelism, cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';

const root = fileURLToPath(new URL('..', import.meta.url));
export const musterCommand = join(root, 'packages/cli/bin/muster');

/** Prints one figure. Times are milliseconds, sizes MiB, rates per second. */
export function report(figure: string, fields: Readonly<Record<string, unknown>>): void {
  writeSync(1, `${JSON.stringify({ figure, ...fields })}\n`);
}

export function reportMachine(): void {
  report('machine', {
    date: new Date().toISOString(),
    cpus: availableParallelism(),
    cpu: cpus()[0]?.model,
    kernel: release(),
    node: process.version,
  });
}

export function summary(samples: readonly number[]): Readonly<Record<string, number>> {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number) =>
    rounded(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return { n: sorted.length, min: at(0), p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

export function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Busy CPU time of the whole machine, milliseconds (proc_stat(5), hundredths of a second). */
function busyMs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) * 10;
}

/**
 * Waits for two seconds in a row with little else running.
 * @param secondsMax how long at most
 * @returns the last percentage seen
 */
export async function quietMachine(secondsMax = 60): Promise<number> {
  let percent = 100;
  for (let second = 0, quiet = 0; second < secondsMax && quiet < 2; second += 1) {
    const before = busyMs();
    await delay(1_000);
    percent = Math.round(((busyMs() - before) / (1_000 * availableParallelism())) * 100);
    quiet = percent <= 10 ? quiet + 1 : 0;
  }
  return percent;
}

export interface BenchCluster {
  readonly api: MusterApi;
  readonly address: string;
  readonly token: string;
  /** For CLI calls. */
  readonly env: NodeJS.ProcessEnv;
  /** Process ids by role: `coordinator`, `agent`, `guard`. */
  pids(role: 'coordinator' | 'agent' | 'guard'): readonly number[];
  stop(): Promise<void>;
}

/** CPU time that processes have taken, milliseconds, by role: user and system. */
export interface CpuByRole {
  readonly coordinator: number;
  readonly agents: number;
  readonly guards: number;
  /** The tasks that have ended: the guards waited for them, so the kernel adds their time to the guards'. */
  readonly tasks: number;
}

/** @returns the time until it has ended, in milliseconds. @throws {Error} if it fails */
export async function commandMs(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd: string,
): Promise<number> {
  const startedMs = performance.now();
  const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'ignore', 'pipe'] });
  let problem = '';
  child.stderr?.on('data', (chunk: Buffer) => (problem += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`${args.join(' ')} exited with ${code}: ${problem}`);
  return performance.now() - startedMs;
}

/** CPU time so far, milliseconds, in the kernel's steps of 10 (proc_pid_stat(5)): of the process, and of its ended children. */
export function cpuMs(pid: number): { readonly own: number; readonly children: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name before may contain anything; utime is field 14, and the third field is the first one behind the name.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number);
  return { own: (user + system) * 10, children: (childUser + childSystem) * 10 };
}

/** CPU time of a cluster's processes so far. Subtract two for what happened between. */
export function cpuByRole(cluster: Pick<BenchCluster, 'pids'>): CpuByRole {
  const times = (role: 'coordinator' | 'agent' | 'guard') => cluster.pids(role).map(cpuMs);
  const own = (of: ReturnType<typeof times>) => of.reduce((sum, each) => sum + each.own, 0);
  const guards = times('guard');
  return {
    coordinator: own(times('coordinator')),
    agents: own(times('agent')),
    guards: own(guards),
    tasks: guards.reduce((sum, each) => sum + each.children, 0),
  };
}

/** What each of `jobs` took between two readings of `cpuByRole`, milliseconds. */
export function cpuPerJob(
  before: CpuByRole,
  after: CpuByRole,
  jobs: number,
): CpuByRole & { readonly all: number } {
  const each = (role: keyof CpuByRole) => rounded((after[role] - before[role]) / jobs);
  const roles = {
    coordinator: each('coordinator'),
    agents: each('agents'),
    guards: each('guards'),
    tasks: each('tasks'),
  };
  const all = rounded(roles.coordinator + roles.agents + roles.guards + roles.tasks);
  return { ...roles, all };
}

/** `muster up` with simulated GPUs in a folder of its own, as a user would have it. */
export async function startCluster(nodes: number, gpus: number): Promise<BenchCluster> {
  const dataDir = mkdtempSync(join(tmpdir(), 'muster-bench-'));
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    MUSTER_DATA: dataDir,
    XDG_STATE_HOME: join(dataDir, 'state'),
  };
  // Costs every start of Node some 70 ms where it is set.
  delete env['NODE_EXTRA_CA_CERTS'];
  const args = ['up', '--nodes', String(nodes), '--gpus', String(gpus), '--port', '0', '--data', dataDir];
  const up = spawn(musterCommand, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await untilReady(up);
  const connection = JSON.parse(readFileSync(join(dataDir, 'connection.json'), 'utf8')) as { addr: string };
  const token = readFileSync(join(dataDir, 'admin.token'), 'utf8').trim();
  const api = connectMuster({ address: connection.addr, token });
  return {
    api,
    address: connection.addr,
    token,
    env,
    pids: (role) => pidsNaming(dataDir, role),
    async stop() {
      api.close();
      const ended = new Promise((resolve) => up.once('exit', resolve));
      up.kill('SIGTERM');
      await ended;
      for (const pid of pidsNaming(dataDir, 'guard')) process.kill(pid, 'SIGTERM');
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function untilReady(up: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let printed = '';
    up.stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
      if (printed.includes('Muster is up')) resolve();
    });
    up.once('exit', (code) => reject(new Error(`muster up ended with ${code}: ${printed}`)));
  });
}

function pidsNaming(dataDir: string, role: 'coordinator' | 'agent' | 'guard'): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const argv = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        // Node's own flags come first, then the script and the role.
        const command = argv.slice(1).filter((each) => !each.startsWith('--'))[1];
        const isRole = role === 'guard' ? argv.some((each) => each.includes('guard')) : command === role;
        return isRole && argv.some((each) => each.startsWith(dataDir));
      } catch {
        return false;
      }
    });
}

/** Waits until all of these jobs have ended. @returns how many did not succeed */
export async function untilEnded(
  api: MusterApi,
  jobIds: readonly string[],
  sinceSeq: number,
): Promise<number> {
  const left = new Set(jobIds);
  let failed = 0;
  const abort = new AbortController();
  for await (const event of api.watchEvents({ sinceSeq, follow: true }, abort.signal)) {
    if (!/^job\.(succeeded|failed|cancelled)$/.test(event.kind) || !left.delete(event.subject)) continue;
    if (event.kind !== 'job.succeeded') failed += 1;
    if (left.size === 0) break;
  }
  abort.abort();
  return failed;
}
