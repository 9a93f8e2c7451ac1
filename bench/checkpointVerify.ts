/**
 * How fast checkpoints are verified: a file as PyTorch writes it and one of safetensors, 1 GB each, from memory (the page
 * cache), on one core. Beside it the floor: reading the same file in the same way and doing nothing with it.
 *
 *     node bench/checkpointVerify.ts [megabytes] [rounds]
 */
import { randomFillSync } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { VerificationDepth } from '@muster/common/checkpoints';
import { chunkBytes } from '../packages/checkpoints/src/openedFile.ts';
import { writeSafetensorsFile } from '../packages/checkpoints/src/testing/safetensorsFile.ts';
import { writeTorchFile } from '../packages/checkpoints/src/testing/torchFile.ts';
import { verifyCheckpoint } from '../packages/checkpoints/src/verify.ts';
import { quietMachine, report, reportMachine, rounded, summary } from './support.ts';

const megabytes = Number(process.argv[2] ?? 1_000);
const rounds = Number(process.argv[3] ?? 5);
/** A layer's weights, not aligned with what is read at once. */
const tensor = randomFillSync(Buffer.alloc(16_000_000));
const targetMegabytesPerSecond = 500;

function read(path: string): void {
  const file = openSync(path, 'r');
  const buffer = Buffer.allocUnsafe(chunkBytes);
  while (readSync(file, buffer) > 0);
  closeSync(file);
}

/** @returns for each round the time of the wall, and of all of this process's threads on processors, milliseconds */
async function timed(act: () => unknown): Promise<{ readonly wallMs: number[]; readonly cpuMs: number[] }> {
  const wallMs: number[] = [];
  const cpuMs: number[] = [];
  await act();
  for (let round = 0; round < rounds; round += 1) {
    const cpuBefore = process.cpuUsage();
    const startedAtMs = performance.now();
    await act();
    wallMs.push(performance.now() - startedAtMs);
    const { user, system } = process.cpuUsage(cpuBefore);
    cpuMs.push((user + system) / 1_000);
  }
  return { wallMs, cpuMs };
}

async function measure(dir: string, name: string): Promise<void> {
  const path = join(dir, name);
  const bytes = statSync(path).size;
  const rates = (times: readonly number[]) => summary(times.map((ms) => bytes / 1_000 / ms));
  const floor = await timed(() => read(path));
  report(`reading ${name}`, { megabytes: rounded(bytes / 1e6), megabytesPerSecond: rates(floor.wallMs) });
  const verify = async (depth: VerificationDepth) => {
    const { verdict, problem } = await verifyCheckpoint(dir, name, { depth });
    if (verdict !== 'verified') throw new Error(`${name} is ${verdict}: ${problem}`);
  };
  const deep = await timed(() => verify('deep'));
  const median = summary(deep.cpuMs).p50 ?? 0;
  report(`verifying ${name} deeply`, {
    megabytesPerSecond: rates(deep.wallMs),
    megabytesPerSecondOfOneCore: rates(deep.cpuMs),
    timesTheFloor: rounded(median / (summary(floor.cpuMs).p50 ?? 1)),
    target: `megabytesPerSecondOfOneCore ≥ ${targetMegabytesPerSecond}`,
  });
  const quick = await timed(() => verify('quick'));
  report(`verifying ${name} quickly`, { wallMs: summary(quick.wallMs), cpuMs: summary(quick.cpuMs) });
}

reportMachine();
const dir = mkdtempSync(join(tmpdir(), 'muster-bench-'));
try {
  const count = Math.ceil((megabytes * 1e6) / tensor.length);
  writeTorchFile(join(dir, 'step-1.pt'), tensor, count);
  writeSafetensorsFile(join(dir, 'model.safetensors'), tensor, count);
  report('machine before', { busyPercent: await quietMachine() });
  await measure(dir, 'step-1.pt');
  await measure(dir, 'model.safetensors');
  report('memory', { rssMib: rounded(process.memoryUsage().rss / 1024 ** 2) });
} finally {
  rmSync(dir, { recursive: true, force: true });
}
