/**
 * Rows of metrics in the coordinator: appending a million of them with a step, a loss and three more metrics each, in the
 * batches that agents send, reading them as a curve and in short, and thinning them to a job's share. Floors of the same run: the
 * same bytes appended to a plain file in as many pieces, and read from it.
 *
 *     node bench/rows.ts [rows] [directory]
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { TaskRef } from '@muster/common/ids';
import type { TrainingRow } from '@muster/common/training';
import { jobIdOf } from '@muster/coordinator/modelFixture';
import { Curves, reduced, rowFilter } from '@muster/coordinator/rows/curve';
import { RowStore, type RowsOfJob } from '@muster/coordinator/rows/rowStore';
import { Summaries } from '@muster/coordinator/rows/summaries';
import { report, reportMachine, rounded } from './support.ts';

const count = Number(process.argv[2] ?? 1_000_000);
const batchRows = 512;
const directory = mkdtempSync(join(process.argv[3] ?? tmpdir(), 'muster-bench-rows-'));
const task: TaskRef = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };
const startMs = 1_700_000_000_000;
const shareBytes = 32 * 1024 * 1024;
const everything = {
  fromMs: Number.NEGATIVE_INFINITY,
  toMs: Number.POSITIVE_INFINITY,
  attempt: null,
  superseded: false,
};

function rowAt(step: number): TrainingRow {
  const values = {
    train_loss: 1 / (step + 1),
    step,
    learning_rate: 3e-4,
    grad_norm: 1.5,
    step_seconds: 0.25,
  };
  return { position: (step + 1) * 80, atMs: startMs + step * 250, values, lossNotFinite: false };
}

/** Time, and the longest in which nothing else had the event loop; to a millisecond, and never under one. */
async function timed(figure: string, work: () => Promise<Readonly<Record<string, unknown>>>): Promise<void> {
  const stalls = monitorEventLoopDelay({ resolution: 1 });
  stalls.enable();
  const startedMs = performance.now();
  const more = await work();
  const ms = performance.now() - startedMs;
  stalls.disable();
  const perSecond = Math.round((count * 1_000) / ms);
  report(figure, {
    ms: rounded(ms),
    rowsPerSecond: perSecond,
    longestStallMs: rounded(stalls.max / 1e6),
    ...more,
  });
}

function look<T>(store: RowStore, use: (rows: RowsOfJob) => Promise<T>): Promise<T | null> {
  return store.lookAt(task.jobId, use);
}

reportMachine();
try {
  const store = new RowStore(directory, (_jobId, error) => {
    throw error;
  });
  await timed('rows appended, 512 at a time', async () => {
    for (let from = 0; from < count; from += batchRows) {
      const rows = Array.from({ length: Math.min(batchRows, count - from) }, (_, index) =>
        rowAt(from + index),
      );
      await store.append(task, rows, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER);
    }
    await store.sync(task.jobId);
    return { bytes: store.grownBytes };
  });
  const path = join(directory, `${task.jobId}.rows`);
  const { size } = statSync(path);
  await timed('floor: the same bytes appended to a file, a piece for each batch', async () => {
    const piece = Buffer.alloc(Math.ceil((size * batchRows) / count), 1);
    for (let from = 0; from < count; from += batchRows) {
      const file = await open(join(directory, 'floor'), 'a');
      await file.write(piece);
      await file.close();
    }
    return {};
  });
  await timed('rows read as one curve of 320 points', async () => {
    const points = await look(store, async ({ firstSteps, read }) => {
      const curves = new Curves('train_loss', rowFilter(everything, firstSteps));
      await read((frame) => curves.take(frame));
      return curves.curves.map((curve) => reduced(curve.points, 320).length);
    });
    return { points };
  });
  await timed('rows read in short', async () => {
    const metrics = await look(store, async ({ firstSteps, read }) => {
      const summaries = new Summaries(rowFilter(everything, firstSteps));
      await read((frame) => summaries.take(frame));
      return summaries.metrics.length;
    });
    return { metrics };
  });
  await timed('floor: the same bytes read from a file', async () => ({ bytes: readFileSync(path).length }));
  await timed('the file read by a coordinator that has just started', async () => {
    const restarted = new RowStore(directory, () => {});
    return { position: await restarted.position(task) };
  });
  await timed('rows thinned to a share of 32 MiB', async () => {
    await store.keepTo(task.jobId, shareBytes);
    return { bytes: statSync(path).size };
  });
} finally {
  rmSync(directory, { recursive: true });
}
