/**
 * What one sample of 8 GPUs costs: through NVML, whose library is replaced by one that takes as long as the real one, and
 * beside it through a program that is started for each sample, as nvidia-smi is.
 *
 *     node bench/gpuSample.ts [samples] [script of the reader: its bundle, as installed]
 *
 * The time that calls are made to take in the library is not ours and is taken off; it is time of the wall, so another
 * program that runs meanwhile makes the figures better or worse than they are. Needs gcc. With 300 samples
 * (60 s) the kernel's hundredths of a second are exact to some 30 µs per sample.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { systemClock } from '@muster/common/clock';
import { silentLogger } from '@muster/common/log';
import { GpuReader } from '../packages/agent/src/gpus/gpuReader.ts';
import { nvmlReaderCommand } from '../packages/agent/src/gpus/nvml/command.ts';
import { functionNames, type NvmlFunction } from '../packages/agent/src/gpus/nvml/functions.ts';
import { createNvmlSource, type NvmlSource } from '../packages/agent/src/gpus/nvml/source.ts';
import { buildFakeNvml, type FakeNvml } from '../test/support/fakeNvml/fakeNvml.ts';
import { buildFakeSmi } from '../test/support/fakeNvml/fakeSmi.ts';
import { quietMachine, report, reportMachine, rounded, summary } from './support.ts';

const gpus = 8;
const samples = Number(process.argv[2] ?? 300);
const intervalMs = 200;
const readerScript =
  process.argv[3] ?? fileURLToPath(new URL('../packages/agent/src/gpus/nvml/main.ts', import.meta.url));

/** Microseconds that calls take on real cards, as far as somebody measured them; the others count like memory. */
const measuredCosts: Partial<Record<NvmlFunction, number>> = {
  nvmlDeviceGetMemoryInfo: 12,
  nvmlDeviceGetMemoryInfo_v2: 12,
  nvmlDeviceGetUtilizationRates: 3,
  // Measured of graphics processes; those of compute may not be cheaper.
  nvmlDeviceGetComputeRunningProcesses_v3: 4_500,
  nvmlEventSetWait_v2: 0,
};
const otherCost = 12;

/** CPU time of a process so far, milliseconds; `ended` adds that of its children that are gone. proc_pid_stat(5) */
function cpuMs(pid: number | 'self', counts: 'own' | 'ended'): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  const [user, system] = counts === 'own' ? [fields[11], fields[12]] : [fields[13], fields[14]];
  return (Number(user) + Number(system)) * 10;
}

function sizeMib(pid: number | 'self', key: 'Rss' | 'Pss'): number {
  const kib = new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(
    readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'),
  )?.[1];
  return rounded(Number(kib) / 1024);
}

/** Takes samples at a steady pace. @returns the wall time of each, milliseconds */
async function paced(take: () => Promise<unknown>): Promise<readonly number[]> {
  const walls: number[] = [];
  for (let taken = 0; taken < samples; taken += 1) {
    const startedAtMs = performance.now();
    await take();
    walls.push(performance.now() - startedAtMs);
    await delay(intervalMs);
  }
  return walls;
}

/** This loop's own cost: a timer and a promise per sample. */
async function idleParentMicros(): Promise<number> {
  const before = process.cpuUsage();
  await paced(async () => {});
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function callsOf(fake: FakeNvml): number {
  return functionNames.reduce((sum, name) => sum + fake.callsOf(name), 0);
}

async function measureNvml(fake: FakeNvml, source: NvmlSource, idleMicros: number): Promise<void> {
  const reader = new GpuReader({ source, profiling: null, clock: systemClock, log: silentLogger });
  const { gpus: listed } = await reader.list();
  if (listed.length !== gpus) throw new Error(`${listed.length} GPUs were listed instead of ${gpus}`);
  for (let warming = 0; warming < 30; warming += 1) await reader.sample();
  const pid = source.readerPid;
  if (pid === null) throw new Error('the reader does not run');

  const callsBefore = callsOf(fake);
  const childBefore = cpuMs(pid, 'own');
  const libraryBefore = fake.spentNanoseconds;
  const parentBefore = process.cpuUsage();
  const walls = await paced(() => reader.sample());
  const parent = process.cpuUsage(parentBefore);
  const libraryMicros = (fake.spentNanoseconds - libraryBefore) / 1_000;
  const childMicros = (cpuMs(pid, 'own') - childBefore) * 1_000 - libraryMicros;
  const parentMicros = parent.user + parent.system - idleMicros;
  report(`one sample of ${gpus} GPUs through NVML`, {
    cpuMs: rounded((childMicros + parentMicros) / samples / 1_000),
    cpuMsOfReader: rounded(childMicros / samples / 1_000),
    cpuMsOfAgent: rounded(parentMicros / samples / 1_000),
    libraryMs: rounded(libraryMicros / samples / 1_000),
    calls: rounded((callsOf(fake) - callsBefore) / samples),
    wallMs: summary(walls),
    target: 'cpuMs < 1',
  });
  report('the reader of NVML', { rssMib: sizeMib(pid, 'Rss'), pssMib: sizeMib(pid, 'Pss') });
  await reader.close();
}

async function measureSmi(fake: FakeNvml, dir: string, idleMicros: number): Promise<void> {
  const [program, ...args] = await buildFakeSmi(dir, fake.path);
  const take = () => promisify(execFile)(program, args);
  const { stdout } = await take();
  if (stdout.trim().split('\n').length !== gpus) throw new Error(`unexpected output: ${stdout}`);
  const childrenBefore = cpuMs('self', 'ended');
  const libraryBefore = fake.spentNanoseconds;
  const parentBefore = process.cpuUsage();
  const walls = await paced(take);
  const parent = process.cpuUsage(parentBefore);
  const libraryMicros = (fake.spentNanoseconds - libraryBefore) / 1_000;
  const childMicros = Math.max(0, (cpuMs('self', 'ended') - childrenBefore) * 1_000 - libraryMicros);
  const parentMicros = parent.user + parent.system - idleMicros;
  report(`one sample of ${gpus} GPUs through a spawned program`, {
    cpuMs: rounded((childMicros + parentMicros) / samples / 1_000),
    cpuMsOfProgram: rounded(childMicros / samples / 1_000),
    cpuMsOfAgent: rounded(parentMicros / samples / 1_000),
    libraryMs: rounded(libraryMicros / samples / 1_000),
    wallMs: summary(walls),
    target: null,
  });
}

reportMachine();
report('busy before the start', { percent: await quietMachine() });
const dir = mkdtempSync(join(tmpdir(), 'muster-bench-'));
try {
  const fake = await buildFakeNvml(dir, { cards: gpus });
  for (const name of functionNames) fake.setCost(name, measuredCosts[name] ?? otherCost);
  fake.setAll({ switchLinks: 18, gpmSupported: 1, gpmPercent: 50, gpmMebibytes: 1_000, processCount: 1 });
  fake.setAll({ processPid: process.pid, processMemoryMb: 30_000 });
  fake.setEventPoll(1_000);
  const idleMicros = await idleParentMicros();
  const source = createNvmlSource({
    library: fake.path,
    command: nvmlReaderCommand(process.execPath, readerScript),
    gpm: true,
    log: silentLogger,
    clock: systemClock,
  });
  await measureNvml(fake, source, idleMicros);
  await measureSmi(fake, dir, idleMicros);
  fake.close();
} finally {
  rmSync(dir, { recursive: true, force: true });
}
