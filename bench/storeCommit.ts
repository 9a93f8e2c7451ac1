/**
 * What a durable commit costs: the store's own, one job with its request and event each, one after the other. Floors of
 * the same run: appending a page to a file and waiting for the disk, once and twice.
 *
 *     node bench/storeCommit.ts [commits] [directory]
 *
 * The directory should lie on the disk that is meant; default: the temporary one.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { aJob } from '@muster/coordinator/modelFixture';
import { openSqliteStore } from '@muster/coordinator/store/sqlite/sqliteStore';
import { emptyBatch } from '@muster/coordinator/store/store';
import { anEvent, aRequest } from '@muster/coordinator/store/storeFixture';
import { report, reportMachine, rounded, summary } from './support.ts';

const commits = Number(process.argv[2] ?? 2_000);
const directory = mkdtempSync(join(process.argv[3] ?? tmpdir(), 'muster-bench-commit-'));

async function timedEach(work: (index: number) => Promise<void> | void): Promise<readonly number[]> {
  const took: number[] = [];
  for (let index = 1; index <= commits; index += 1) {
    const startedMs = performance.now();
    await work(index);
    took.push(performance.now() - startedMs);
  }
  return took;
}

function reportTimes(figure: string, took: readonly number[]): void {
  const totalMs = took.reduce((sum, each) => sum + each, 0);
  report(figure, { perSecond: rounded((took.length * 1_000) / totalMs), ms: summary(took) });
}

function appended(waits: number): (index: number) => void {
  return () => {
    for (let wait = 0; wait < waits; wait += 1) {
      writeSync(file, page);
      fdatasyncSync(file);
    }
  };
}

reportMachine();
const page = Buffer.alloc(4_096, 1);
const file = openSync(join(directory, 'floor'), 'w');
try {
  reportTimes('floor: a page appended and synced', await timedEach(appended(1)));
  const store = openSqliteStore(directory, () => 'bench');
  const took = await timedEach((index) => {
    const job = aJob(index);
    const requests = [aRequest({ requestId: `request-${index}`, jobIds: [job.id] })];
    return store.commit({ ...emptyBatch, newJobs: [job], requests, events: [anEvent(index, job.id, 1)] });
  });
  reportTimes('a commit of the store', took);
  await store.close();
  reportTimes('floor: two pages appended and synced, one after the other', await timedEach(appended(2)));
} finally {
  closeSync(file);
  rmSync(directory, { recursive: true });
}
