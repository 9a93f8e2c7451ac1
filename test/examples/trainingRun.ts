/** Starts a training program as the nodes of one attempt, its environment set by hand, and watches it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { patienceMs } from '../support/patience.ts';
import { freePort, waitFor } from '../support/services.ts';

export const examplesDir: string = fileURLToPath(new URL('../../examples/', import.meta.url));

const startedGroups = new Set<number>();

// Every node is a process group of its own: whatever a failed test leaves behind goes with its group.
afterEach(() => {
  for (const group of startedGroups) signalIfAlive(-group, 'SIGKILL');
  startedGroups.clear();
});

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    // A zombie has run its last instruction; who reaps it is not the program's business.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

function childrenOf(pid: number): readonly number[] {
  const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return list.split(' ').filter(Boolean).map(Number);
}

function environmentOf(pid: number): ReadonlyMap<string, string> {
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  return new Map(entries.map((entry) => [entry.split('=', 1)[0] ?? '', entry.slice(entry.indexOf('=') + 1)]));
}

/** What runs on one node: a launcher and its ranks. */
export class NodeRun {
  output = '';
  status: number | null = null;
  private readonly launcher: ChildProcess;

  constructor(command: readonly string[], env: NodeJS.ProcessEnv) {
    const [program = '', ...args] = command;
    // Only PATH comes from outside: a variable of the machine must not decide a test.
    const base = { PATH: process.env.PATH, HOME: process.env.HOME, OMP_NUM_THREADS: '1' };
    this.launcher = spawn(program, args, {
      env: { ...base, ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    startedGroups.add(this.pid);
    for (const stream of [this.launcher.stdout, this.launcher.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.launcher.on('close', (code, signal) => {
      this.status = signal === null ? code : 128 + constants.signals[signal];
    });
  }

  get pid(): number {
    if (this.launcher.pid === undefined) throw new Error(`cannot start ${this.launcher.spawnfile}`);
    return this.launcher.pid;
  }

  /** Ranks that live, by rank. */
  ranks(): ReadonlyMap<number, number> {
    const found = childrenOf(this.pid).map((pid) => [environmentOf(pid).get('RANK'), pid] as const);
    return new Map(found.flatMap(([rank, pid]) => (rank === undefined ? [] : [[Number(rank), pid]])));
  }

  signalLauncher(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  signalGroup(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal);
  }

  /** Waits for the end and returns the exit status, 128 + n for signal n. */
  async ended(timeoutMs = patienceMs): Promise<number> {
    await waitFor(`node ends, having said:\n${this.output}`, () => this.status !== null, { timeoutMs });
    return this.status ?? -1;
  }
}

export interface RunOptions {
  /** The program and its flags, as started on each node. */
  readonly command: readonly string[];
  readonly nodeCount?: number;
  readonly ranksPerNode?: number;
  readonly env?: NodeJS.ProcessEnv;
}

/** The nodes of one attempt. */
export class TrainingRun {
  readonly nodes: NodeRun[] = [];
  readonly port: number;
  private readonly options: RunOptions;

  constructor(port: number, options: RunOptions) {
    this.port = port;
    this.options = options;
  }

  /** `changes` makes this node differ from the others. */
  startNode(nodeRank: number, changes: NodeJS.ProcessEnv = {}): NodeRun {
    const { command, nodeCount = 2, ranksPerNode = 2, env = {} } = this.options;
    const place = {
      NNODES: String(nodeCount),
      NODE_RANK: String(nodeRank),
      NPROC_PER_NODE: String(ranksPerNode),
      MASTER_ADDR: '127.0.0.1',
      MASTER_PORT: String(this.port),
    };
    const forTorchrun = Object.fromEntries(
      Object.entries(place).map(([name, value]) => [`PET_${name}`, value]),
    );
    const worldSize = String(nodeCount * ranksPerNode);
    const node = new NodeRun(command, {
      ...place,
      ...forTorchrun,
      WORLD_SIZE: worldSize,
      ...env,
      ...changes,
    });
    this.nodes.push(node);
    return node;
  }

  get output(): string {
    return this.nodes.map((node) => node.output).join('');
  }

  /** The process id of a rank, once it runs. */
  async rank(rank: number): Promise<number> {
    const ranks = () => new Map(this.nodes.flatMap((node) => [...node.ranks()]));
    return (await waitFor(`rank ${rank} runs`, () => ranks().get(rank))) ?? -1;
  }

  /** Waits for a step of at least `step`, or for the end of the run, whichever comes first. */
  async reached(step: number): Promise<void> {
    const isThere = () =>
      this.lossSteps().some((seen) => seen >= step) || this.nodes.some((node) => node.status !== null);
    await waitFor(`step ${step}`, () => isThere() || this.output, {
      until: (seen) => seen === true,
    });
  }

  /** Exit statuses by node. */
  async ended(timeoutMs?: number): Promise<readonly number[]> {
    return Promise.all(this.nodes.map((node) => node.ended(timeoutMs)));
  }

  lossSteps(): readonly number[] {
    return Array.from(this.output.matchAll(/^iter (\d+): /gm), ([, step]) => Number(step));
  }

  losses(): readonly number[] {
    return Array.from(this.output.matchAll(/^iter \d+: loss (\S+), time \d+\.\d\dms$/gm), ([, loss]) =>
      Number(loss),
    );
  }

  /** The digest of the final weights, null where the training did not complete. */
  digest(): string | null {
    return (
      /^training complete: step \d+ loss \S+ weights (sha256:[0-9a-f]{64})$/m.exec(this.output)?.[1] ?? null
    );
  }
}

export async function startRun(options: RunOptions): Promise<TrainingRun> {
  const run = new TrainingRun(await freePort(), options);
  for (let node = 0; node < (options.nodeCount ?? 2); node += 1) run.startNode(node);
  return run;
}

/** An attempt of which no node has been started yet. */
export async function prepareRun(options: RunOptions): Promise<TrainingRun> {
  return new TrainingRun(await freePort(), options);
}

/** Resolves once none of the processes is left. */
export async function gone(pids: Iterable<number>): Promise<void> {
  const all = [...pids];
  await waitFor('all ranks are gone', () => all.filter(isAlive), { until: (left) => left.length === 0 });
}

/** The newest checkpoint; null where there is none. Unfinished files do not count. */
export function latestCheckpoint(dir: string): string | null {
  const names = readdirSync(dir).filter((name) => /^step-\d{6}\.(?:json|pt)$/.test(name));
  const newest = names.sort().at(-1);
  return newest === undefined ? null : join(dir, newest);
}

export type Delivery = (run: TrainingRun) => Promise<void>;

/** The ways in which a supervisor's SIGTERM arrives. */
export const deliveries: Readonly<Record<string, Delivery>> = {
  'every process of every node': async (run) => run.nodes.forEach((node) => node.signalGroup('SIGTERM')),
  'the launchers only': async (run) => run.nodes.forEach((node) => node.signalLauncher('SIGTERM')),
  'every process, twice': async (run) => {
    for (const node of [...run.nodes, ...run.nodes]) node.signalGroup('SIGTERM');
  },
  'a single rank': async (run) => {
    process.kill(await run.rank(3), 'SIGTERM');
  },
};
