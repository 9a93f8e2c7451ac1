/**
 * What a whole agent costs that watches 8 GPUs once a second, none of them used by a job: the agent, its reader of NVML,
 * its guard. The driver's library is a stand-in whose calls take no time, so all of it is ours; beside it the same agent
 * with a program in nvidia-smi's place. With the built command, as installed.
 *
 *     node bench/agentWatching.ts [seconds]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { fakeGpu, writeFakeNvidiaSmi } from '../test/support/fakeNvidiaSmi.ts';
import { buildFakeNvml } from '../test/support/fakeNvml/fakeNvml.ts';
import { musterCommand, quietMachine, report, reportMachine, rounded } from './support.ts';

const seconds = Number(process.argv[2] ?? 60);
const gpus = 8;
/** Past the first listing, compilations and collections. */
const settleMs = 15_000;

interface Usage {
  readonly cpuMs: number;
  readonly rssMib: number;
  readonly pssMib: number;
}

/** CPU time with that of children that have ended (proc_pid_stat(5), fields 14 to 17, hundredths of a second). */
function usageOf(pid: number): Usage {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .slice(11, 15)
    .map(Number);
  const memory = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const mib = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(memory)?.[1]) / 1024;
  return { cpuMs: fields.reduce((sum, each) => sum + each * 10, 0), rssMib: mib('Rss'), pssMib: mib('Pss') };
}

function childrenOf(pid: number, naming: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((each) => {
      try {
        const parent = Number(
          readFileSync(`/proc/${each}/stat`, 'utf8')
            .replace(/^.*\) /, '')
            .split(' ')[1],
        );
        return parent === pid && readFileSync(`/proc/${each}/cmdline`, 'utf8').includes(naming);
      } catch {
        return false;
      }
    });
}

async function untilFile(path: string): Promise<string> {
  for (;;) {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      await delay(50);
    }
  }
}

async function untilListed(api: MusterApi, node: string): Promise<void> {
  for (;;) {
    const known = (await api.listNodes()).find(({ name }) => name === node);
    if (known?.inventory.gpus.length === gpus) return;
    await delay(100);
  }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

const dir = mkdtempSync(join(tmpdir(), 'muster-bench-'));
const env: NodeJS.ProcessEnv = { ...process.env };
delete env['NODE_EXTRA_CA_CERTS'];
const start = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  spawn(musterCommand, [...args, '--log-level', 'error'], { env: { ...env, ...more }, stdio: 'inherit' });

reportMachine();
const data = join(dir, 'coordinator');
const coordinator = start(['coordinator', '--listen', '127.0.0.1:0', '--http', 'off', '--data', data]);
try {
  const { addr } = JSON.parse(await untilFile(join(data, 'connection.json'))) as { addr: string };
  const api = connectMuster({ address: addr, token: readFileSync(join(data, 'admin.token'), 'utf8').trim() });
  mkdirSync(join(dir, 'nvml'));
  mkdirSync(join(dir, 'smi'));
  const fake = await buildFakeNvml(join(dir, 'nvml'), { cards: gpus });
  const program = writeFakeNvidiaSmi(join(dir, 'smi'), {
    gpus: Array.from({ length: gpus }, (_, index) => fakeGpu(index)),
  });
  const sources = {
    nvml: ['--gpu-source', 'nvml', '--nvml-library', fake.path],
    'nvidia-smi': ['--gpu-source', 'nvidia-smi', '--nvidia-smi', program],
  };
  for (const [source, flags] of Object.entries(sources)) {
    const { token } = await api.createJoinToken(source);
    const place = ['--data', join(dir, source), '--name', source, '--coordinator', addr, '--metrics', 'off'];
    const agent = start(['agent', ...place, ...flags, '--profiling', 'off', '--sample-interval', '1s'], {
      MUSTER_JOIN_TOKEN: token,
    });
    await untilListed(api, source);
    await delay(settleMs);
    const busyPercent = await quietMachine();
    const pid = agent.pid ?? 0;
    const pids = [pid, ...childrenOf(pid, 'nvml-reader')];
    const before = pids.map(usageOf);
    await delay(seconds * 1_000);
    const after = pids.map(usageOf);
    const sum = (pick: (usage: Usage) => number) => after.reduce((total, each) => total + pick(each), 0);
    const cpuMs = after.reduce((total, each, index) => total + each.cpuMs - (before[index]?.cpuMs ?? 0), 0);
    report(`an agent that watches ${gpus} GPUs with ${source} for ${seconds} s`, {
      cpuPercentOfOneCore: rounded(cpuMs / (seconds * 10)),
      rssMib: { agent: rounded(after[0]?.rssMib ?? 0), reader: rounded(after[1]?.rssMib ?? 0) },
      pssMib: rounded(sum(({ pssMib }) => pssMib)),
      busyPercent,
      target: source === 'nvml' ? 'cpu < 1 %, memory < 100 MB' : null,
    });
    await end(agent);
  }
  api.close();
} finally {
  await end(coordinator);
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}
