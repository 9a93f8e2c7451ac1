/**
 * What storing a task's output costs the coordinator: appended to its log as pieces come, without and with a cap, beside
 * the floor, which is the same pieces written to a file. CPU time, so that other programs disturb little.
 *
 *     node bench/output.ts [mebibytes]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import { LogStore } from '@muster/coordinator/logs/logStore';
import { quietMachine, report, reportMachine, rounded } from './support.ts';

const mebibytes = Number(process.argv[2] ?? 512);
/** As an agent sends them. */
const piece = Buffer.alloc(128 * 1024, 'a line of output as programs write it\n');
const pieces = mebibytes * 8;
const rounds = 5;
const task = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };

type Write = (directory: string) => Promise<void>;

async function appendTo(directory: string, capBytes: number): Promise<void> {
  const logs = new LogStore(directory, { capBytes });
  for (let offset = 0, count = 0; count < pieces; count += 1) offset = await logs.append(task, offset, piece);
  await logs.close();
}

const writers: Readonly<Record<string, Write>> = {
  floor: async (directory) => {
    await using file = await open(join(directory, 'floor'), 'w');
    for (let count = 0; count < pieces; count += 1)
      await file.write(piece, 0, piece.length, count * piece.length);
  },
  'log without a cap': (directory) => appendTo(directory, Number.POSITIVE_INFINITY),
  'log with a cap of a quarter': (directory) => appendTo(directory, (mebibytes * 1024 * 1024) / 4),
};

/** @returns milliseconds of CPU time */
async function costOf(write: Write): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'));
  try {
    const before = process.cpuUsage();
    await write(directory);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

reportMachine();
report('others', { busyPercent: await quietMachine() });
const least = new Map<string, number>();
for (let round = 0; round < rounds; round += 1) {
  for (const [name, write] of Object.entries(writers)) {
    least.set(name, Math.min(least.get(name) ?? Number.POSITIVE_INFINITY, await costOf(write)));
  }
}
for (const [name, cpuMs] of least) {
  const ofFloor = rounded(cpuMs / (least.get('floor') ?? cpuMs));
  report(name, {
    mebibytes,
    cpuMs: rounded(cpuMs),
    mebibytesPerCpuSecond: rounded(mebibytes / (cpuMs / 1_000)),
    ofFloor,
  });
}
