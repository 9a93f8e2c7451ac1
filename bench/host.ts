/**
 * What reading the host costs: the agent's own readers, and systeminformation's answers to the same questions beside
 * them in the same run. Decides docs/decisions/host-facts.md.
 *
 *     node bench/host.ts [rounds]
 *
 * Processes are counted for the whole machine, of several rounds the least: other programs only add to them. CPU is the
 * program's own and, in steps of 10 ms over all rounds, that of the processes it started.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readHostFacts } from '@muster/agent/host/hostFacts';
import { HostMetrics } from '@muster/agent/host/hostMetrics';
import { readNics } from '@muster/agent/host/nics';
import { readRdmaDevices } from '@muster/agent/host/rdma';
import { build } from 'esbuild';
import systeminformation from 'systeminformation';
import { quietMachine, report, reportMachine, rounded, summary } from './support.ts';

const rounds = Number(process.argv[2] ?? 10);
/** systeminformation answers from its last result when it is asked again sooner. */
const cacheMs = 600;

function processesStarted(): number {
  return Number(/^processes (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]);
}

/** CPU time of children that have ended, milliseconds (proc_pid_stat(5), fields 16 and 17). */
function childrenCpuMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

interface Cost {
  readonly cpuMs: number;
  readonly childrenCpuMs: number;
  readonly processes: number;
  readonly wallMs: Readonly<Record<string, number>>;
}

/** @param pauseMs between two rounds @param times in one round, for what is too short to be timed alone */
async function costOf(read: () => unknown, pauseMs: number, times = 1): Promise<Cost> {
  // The first call of each starts threads and compiles.
  await read();
  const wallMs: number[] = [];
  let cpuMs = 0;
  let processes = Number.POSITIVE_INFINITY;
  const childrenBeforeMs = childrenCpuMs();
  for (let round = 0; round < rounds; round += 1) {
    await delay(pauseMs);
    const processesBefore = processesStarted();
    const cpuBeforeMs = ownCpuMs();
    const startedMs = performance.now();
    for (let time = 0; time < times; time += 1) await read();
    wallMs.push((performance.now() - startedMs) / times);
    cpuMs += (ownCpuMs() - cpuBeforeMs) / times;
    processes = Math.min(processes, processesStarted() - processesBefore);
  }
  return {
    cpuMs: rounded(cpuMs / rounds),
    childrenCpuMs: rounded((childrenCpuMs() - childrenBeforeMs) / rounds),
    processes,
    wallMs: summary(wallMs),
  };
}

/** Bundled as the agent is, loaded by a process of its own. @returns medians over a few of them */
async function costOfLoading(
  scratch: string,
  name: string,
  contents: string,
): Promise<Readonly<Record<string, unknown>>> {
  const outfile = join(scratch, `${name}.mjs`);
  const root = fileURLToPath(new URL('..', import.meta.url));
  const banner =
    "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
  await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile,
    banner: { js: banner },
    logLevel: 'error',
  });
  const program = `
    const { readFileSync } = require('node:fs');
    const sizeKib = (key) => Number(new RegExp('^' + key + ':\\\\s+(\\\\d+) kB', 'm').exec(readFileSync('/proc/self/status', 'utf8'))[1]);
    const run = async () => {
      // Every agent has these already: the module loader, threads for files, timers, regular expressions.
      await import('data:text/javascript,');
      const { readFile, statfs } = await import('node:fs/promises');
      await Promise.all([statfs('/'), statfs('/'), statfs('/'), readFile('/proc/stat')]);
      await (await import('node:timers/promises')).setTimeout(1);
      gc();
      const before = { rss: sizeKib('VmRSS'), anonymous: sizeKib('RssAnon'), ...process.cpuUsage() };
      const { use } = await import(${JSON.stringify(outfile)});
      const { user, system } = process.cpuUsage();
      await use();
      gc();
      console.log(JSON.stringify({
        rss: sizeKib('VmRSS') - before.rss,
        anonymous: sizeKib('RssAnon') - before.anonymous,
        cpu: user + system - before.user - before.system,
      }));
    };
    run();`;
  const costs: Readonly<Record<'rss' | 'anonymous' | 'cpu', number>>[] = [];
  for (let round = 0; round < 5; round += 1) {
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '-e', program]);
    costs.push(JSON.parse(stdout) as (typeof costs)[number]);
  }
  return {
    bundleKib: Math.round(readFileSync(outfile).length / 1024),
    rssGrowthMib: summary(costs.map(({ rss }) => rss / 1024))['p50'],
    ofThatAnonymousMib: summary(costs.map(({ anonymous }) => anonymous / 1024))['p50'],
    loadCpuMs: summary(costs.map(({ cpu }) => cpu / 1_000))['p50'],
  };
}

reportMachine();
const busyPercent = await quietMachine();
const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-host-'));
try {
  const metrics = new HostMetrics({ paths: ['/'], monotonicMs: () => performance.now() });
  const theirs = systeminformation;
  const questions: readonly {
    readonly figure: string;
    readonly ours: () => unknown;
    readonly theirs: Readonly<Record<string, () => Promise<unknown>>>;
  }[] = [
    {
      figure: 'facts, once',
      ours: () => readHostFacts(),
      theirs: { osInfo: () => theirs.osInfo(), cpu: () => theirs.cpu(), fsSize: () => theirs.fsSize() },
    },
    {
      figure: 'network devices, once a minute',
      ours: async () => [await readNics(), await readRdmaDevices()],
      theirs: { networkInterfaces: () => theirs.networkInterfaces() },
    },
    {
      figure: 'one sample',
      ours: () => metrics.sample(),
      theirs: {
        currentLoad: () => theirs.currentLoad(),
        mem: () => theirs.mem(),
        disksIO: () => theirs.disksIO(),
        networkStats: () => theirs.networkStats('*'),
      },
    },
  ];
  for (const question of questions) {
    const target = question.figure === 'one sample' ? { target: 'cpuMs < 1, processes 0' } : {};
    report(question.figure, { ...(await costOf(question.ours, 50, 50)), busyPercent, ...target });
    for (const [name, read] of Object.entries(question.theirs)) {
      report(`${question.figure}: systeminformation.${name}`, {
        ...(await costOf(read, cacheMs)),
        busyPercent,
      });
    }
  }

  report(
    'the readers, loaded and used',
    await costOfLoading(
      scratch,
      'ours',
      `import { HostInventory } from '@muster/agent/host/inventory';
       import { HostMetrics } from '@muster/agent/host/hostMetrics';
       export async function use() {
         await new HostInventory({ monotonicMs: () => performance.now() }).read();
         new HostMetrics({ paths: ['/'], monotonicMs: () => performance.now() }).sample();
       }`,
    ),
  );
  const load = `import information from 'systeminformation';`;
  report(
    'systeminformation, loaded only',
    await costOfLoading(
      scratch,
      'loaded',
      `${load} export async function use() { return information.version(); }`,
    ),
  );
  report(
    'systeminformation, loaded and used for the facts',
    await costOfLoading(
      scratch,
      'used',
      `${load} export async function use() {
         await information.osInfo(); await information.cpu(); await information.networkInterfaces();
       }`,
    ),
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
