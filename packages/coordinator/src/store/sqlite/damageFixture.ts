/**
 * A store with a history, as a `kill -9` would have left it at several moments: its files as they were copied while it
 * was open, and what had been acknowledged by then, as the store itself showed it.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { aJob, seededRandom } from '../../modelFixture.ts';
import { type Batch, emptyBatch, type JobRecord, type RequestRecord, type Store } from '../store.ts';
import { anEvent, aRequest, attemptsOf, started } from '../storeFixture.ts';
import { openSqliteStore } from './sqliteStore.ts';

/** What was acknowledged, by name: a job, an event, a request. */
export type Shown = ReadonlyMap<string, string>;

export interface KilledStore {
  readonly dataDir: string;
  readonly shown: Shown;
}

/** Commits from one moment to the next; together they carry the log over several times. */
const commitsBetween = [1, 7, 40, 60, 3, 90, 25, 120];

/** @param directory of its own for this history */
export async function storeHistory(directory: string, seed: number): Promise<readonly KilledStore[]> {
  const random = seededRandom(seed);
  const dataDir = join(directory, 'live');
  mkdirSync(dataDir);
  const moments: KilledStore[] = [];
  const jobs = new Jobs();
  for (const [moment, commits] of commitsBetween.entries()) {
    // Opened and closed in between, as after an orderly stop.
    const store = openSqliteStore(dataDir, () => 'c0ffee');
    for (let commit = 0; commit < commits; commit += 1) {
      await store.commit(jobs.nextBatch(1 + Math.floor(random() * 3)));
      if (random() < 0.2) await store.writeMeta('nats_cursor', String(jobs.count));
    }
    const isClosed = moment % 3 === 2;
    const shown = await shownBy(store, jobs.count);
    if (isClosed) await store.close();
    const copy = join(directory, `moment-${moment}`);
    cpSync(dataDir, copy, { recursive: true });
    moments.push({ dataDir: copy, shown });
    if (!isClosed) await store.close();
  }
  return moments;
}

/** New jobs, each with its request and its event; with every batch an earlier one starts. */
export class Jobs {
  count = 0;
  events = 0;

  nextBatch(size: number): Batch {
    const first = this.count + 1;
    const newJobs = Array.from({ length: size }, (_, index) => aJob(first + index));
    this.count += size;
    const requests = newJobs.map((job) =>
      aRequest({ requestId: `request-${job.submitSeq}`, jobIds: [job.id] }),
    );
    const events = newJobs.map((job) => anEvent(this.nextEvent(), job.id, 1));
    if (first === 1) return { ...emptyBatch, newJobs, requests, events };
    const begun = started(aJob(first - 1), 1);
    return {
      ...emptyBatch,
      newJobs,
      requests,
      jobs: [begun],
      attempts: attemptsOf(begun),
      events: [...events, anEvent(this.nextEvent(), begun.id, 2)],
    };
  }

  private nextEvent(): number {
    this.events += 1;
    return this.events;
  }
}

/** Everything that the store shows of the jobs up to `last`, by every way that leads there. */
export async function shownBy(store: Store, last: number): Promise<Shown> {
  const shown = new Map<string, string>();
  const put = (name: string, value: unknown) => {
    if (value !== null) shown.set(name, JSON.stringify(value));
  };
  const { records: listed } = await store.listJobs({
    states: [],
    arrayId: null,
    name: null,
    limit: 100_000,
    sizeMax: Number.MAX_SAFE_INTEGER,
    beforeSubmitSeq: null,
  });
  for (const record of listed) put(`listed ${record.job.id}`, record);
  for (let number = 1; number <= last; number += 1) {
    put(`read ${number}`, (await store.readJob(aJob(number).id)) satisfies JobRecord | null);
    put(`request ${number}`, (await store.readRequest(`request-${number}`)) satisfies RequestRecord | null);
  }
  for (const event of await store.readEvents(0, 1_000_000, null)) {
    put(`event ${event.seq}`, event);
  }
  for (const { id } of listed.map(({ job }) => job)) {
    for (const event of await store.readEvents(0, 1_000, id)) put(`event ${event.seq} of ${id}`, event);
  }
  put('cursor', await store.readMeta('nats_cursor'));
  return shown;
}

/** Acknowledged and not shown, or shown otherwise. */
export function lostIn(acknowledged: Shown, shown: Shown): readonly string[] {
  return [...acknowledged].filter(([name, value]) => shown.get(name) !== value).map(([name]) => name);
}

/** Jobs that SQLite by itself shows of a store, whatever has happened to it; 0 where it refuses. */
export function jobsBySqliteAlone(dataDir: string): number {
  const database = new DatabaseSync(join(dataDir, 'muster.db'));
  try {
    return Number(database.prepare('select count(*) as jobs from jobs').get()?.['jobs']);
  } catch {
    return 0;
  } finally {
    database.close();
  }
}

/** @returns false where there is no bit in the file, or no file */
export function flipBit(path: string, random: () => number): boolean {
  if (!existsSync(path) || statSync(path).size === 0) return false;
  const bytes = readFileSync(path);
  const at = Math.floor(random() * bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8));
  writeFileSync(path, bytes);
  return true;
}
