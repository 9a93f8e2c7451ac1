/**
 * What alternatives cost, in CPU time of this process: docs/decisions/memory-store.md, nvidia-smi-csv.md and
 * readings-in-memory.md chose between them.
 *
 *     node bench/alternatives.ts [output of nvidia-smi -q -x] [output of nvidia-smi --query-gpu as CSV]
 */

import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { JobId, NodeName } from '@muster/common/ids';
import { jobMetrics } from '@muster/common/telemetry';
import { aJob } from '@muster/coordinator/modelFixture';
import { Memory, MemoryStore } from '@muster/coordinator/store/memory/memoryStore';
import { migrationsFrom } from '@muster/coordinator/store/schema';
import type { OpenedDatabase } from '@muster/coordinator/store/sqlite/open';
import { SqliteStore } from '@muster/coordinator/store/sqlite/sqliteStore';
import { emptyBatch, type Store } from '@muster/coordinator/store/store';
import { anEvent } from '@muster/coordinator/store/storeFixture';
import { readingChunkBytes, readingsPerChunk } from '@muster/coordinator/telemetry/chunkMemory';
import { JobReadings, readingAgeMsMax } from '@muster/coordinator/telemetry/jobReadings';
import { parseCsv } from '../packages/agent/src/gpus/nvidiaSmi/csv.ts';
import { parseSmiXml } from '../packages/agent/src/gpus/nvidiaSmi/xml.ts';
import { sampleOfCard } from '../packages/agent/src/gpus/nvidiaSmi/xmlSample.ts';
import { report, reportMachine, rounded } from './support.ts';

/** CPU milliseconds of one run, as the mean of many. */
async function cpuMsOf(runs: number, work: () => unknown): Promise<number> {
  await work();
  const before = process.cpuUsage();
  for (let run = 0; run < runs; run += 1) await work();
  const { user, system } = process.cpuUsage(before);
  return rounded((user + system) / 1_000 / runs);
}

/** SQLite without files: neither log, witness nor sums. */
function sqliteInMemory(): Store {
  const database = new DatabaseSync(':memory:');
  for (const { sql } of migrationsFrom(0)) database.exec(sql);
  const files = { follow: () => {}, acknowledge: () => {}, prepareClose: () => {}, close: () => {} };
  const opened = { database, clusterId: 'bench', files, nextPage: null, lock: { release: () => {} } };
  return new SqliteStore(opened as unknown as OpenedDatabase);
}

/** What a unit test does: a store of its own, some jobs that are submitted and change, and a look at all of it. */
async function smallStory(store: Store, jobs: number): Promise<void> {
  for (let number = 1; number <= jobs; number += 1) {
    const job = aJob(number);
    const seq = number * 2;
    await store.commit({ ...emptyBatch, newJobs: [job], events: [anEvent(seq - 1, job.id, 1)] });
    await store.commit({ ...emptyBatch, jobs: [{ ...job, failures: 1 }], events: [anEvent(seq, job.id, 2)] });
  }
  await store.load();
  await store.readEvents(0, 1_000, null);
  await store.close();
}

async function stores(): Promise<void> {
  for (const jobs of [0, 5, 200]) {
    const memory = await cpuMsOf(40, () => smallStory(new MemoryStore(new Memory('bench')), jobs));
    const sqlite = await cpuMsOf(40, () => smallStory(sqliteInMemory(), jobs));
    report('store of a test', { jobs, unit: 'CPU ms', memory, sqlite, ratio: rounded(sqlite / memory) });
  }
}

async function nvidiaSmiText(xmlPath: string, csvPath: string): Promise<void> {
  const [xml, csv] = [readFileSync(xmlPath, 'utf8'), readFileSync(csvPath, 'utf8')];
  const cells = (csv.split('\n')[0] ?? '').split(', ').map((_, index) => `field${index}`);
  const cards = parseSmiXml(xml)?.cards.length ?? 0;
  const xmlMs = await cpuMsOf(40, () => parseSmiXml(xml)?.cards.map((card) => sampleOfCard(card, 'GPU')));
  const csvMs = await cpuMsOf(400, () => parseCsv(csv, cells));
  report('text of nvidia-smi', {
    unit: 'CPU ms for one text',
    cards,
    xmlBytes: xml.length,
    xml: xmlMs,
    csvBytes: csv.length,
    csv: csvMs,
  });
}

/** Readings of every ten seconds. A ring would take the whole window for each GPU of each attempt, however short it was. */
function readings(): void {
  const stepMs = 10_000;
  const ringBytes =
    (readingAgeMsMax / stepMs) * (Object.keys(jobMetrics).length + 1) * Float32Array.BYTES_PER_ELEMENT;
  for (const [name, series, count] of [
    ['long jobs', 200, readingAgeMsMax / stepMs],
    ['jobs of one minute', 20_000, 6],
    ['jobs of half an hour', 2_000, 180],
  ] as const) {
    const store = new JobReadings(Number.POSITIVE_INFINITY);
    for (let index = 0; index < series; index += 1) {
      const task = { jobId: `job_${index}` as JobId, attempt: 1, nodeRank: 0 };
      for (let reading = 1; reading <= count; reading += 1) {
        const atMs = reading * stepMs;
        store.append(task, 'node-1' as NodeName, { gpuUuid: 'GPU', utilization: 50 }, atMs, atMs);
      }
    }
    report('memory of readings', {
      name,
      series,
      readings: count,
      unit: 'KiB for each series',
      chunks: rounded(store.bytes / series / 1_024),
      ring: rounded(ringBytes / 1_024),
      chunk: rounded(readingChunkBytes / 1_024),
      readingsPerChunk,
    });
  }
}

reportMachine();
await stores();
const [xmlPath, csvPath] = process.argv.slice(2);
if (xmlPath !== undefined && csvPath !== undefined) await nvidiaSmiText(xmlPath, csvPath);
readings();
