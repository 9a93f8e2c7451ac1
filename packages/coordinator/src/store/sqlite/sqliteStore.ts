/** The embedded store: SQLite in WAL mode, one fsync per commit, one process per data directory. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { JobId } from '@muster/common/ids';
import { type JobStateKind, jobStates, type TerminalJobState } from '@muster/common/states';
import { clusterSubject } from '../../leases/clusterSubject.ts';
import type { Attempt, StoredEvent } from '../../model.ts';
import {
  type AttemptRow,
  attemptFromRow,
  attemptToRow,
  type EventRow,
  eventFromRow,
  eventToRow,
  jobFromRow,
  jobToRow,
  type NodeRow,
  nodeFromRow,
  nodeToRow,
} from '../rows.ts';
import { deleteCredential } from '../statements/deleteCredential.ts';
import { insertEvent } from '../statements/insertEvent.ts';
import { insertJob } from '../statements/insertJob.ts';
import { insertRequest } from '../statements/insertRequest.ts';
import { selectMeta, upsertMeta } from '../statements/meta.ts';
import { removeNode } from '../statements/removeNode.ts';
import { selectAttempts } from '../statements/selectAttempts.ts';
import { selectCredentials } from '../statements/selectCredentials.ts';
import { selectEvents, selectEventsOfSubject } from '../statements/selectEvents.ts';
import { selectJobIds, selectOutcomes } from '../statements/selectJobIds.ts';
import {
  type JobWithAttemptRow,
  newestAttemptRow,
  selectActiveJobs,
  selectJob,
  selectJobBySubmitSeq,
  selectSubmitSeqs,
} from '../statements/selectJobs.ts';
import { selectNodes } from '../statements/selectNodes.ts';
import { selectPositions, selectSubjectPositions } from '../statements/selectPositions.ts';
import { selectRequest } from '../statements/selectRequest.ts';
import { updateJob } from '../statements/updateJob.ts';
import { upsertAttempt } from '../statements/upsertAttempt.ts';
import { upsertCredential } from '../statements/upsertCredential.ts';
import { upsertNode } from '../statements/upsertNode.ts';
import {
  type Batch,
  type JobPage,
  type JobQuery,
  type JobRecord,
  type Snapshot,
  type Store,
  StoreError,
} from '../store.ts';
import { backupPieces } from './backup.ts';
import { damaged } from './inspection.ts';
import { asStoreError, closeDatabase, type OpenedDatabase, openDatabase } from './open.ts';
import type { StoreFiles } from './storeFiles.ts';

type Parameters = Record<string, SQLInputValue>;

/** Characters of the data of events in one read: enough for many, and read within milliseconds. */
const eventsSizeMax = 512 * 1024;

/**
 * @param dataDir absolute, exists
 * @param newClusterId id for a store that does not exist yet
 * @throws {StoreError} named by what is wrong with the store and what to do
 */
export function openSqliteStore(dataDir: string, newClusterId: () => string): SqliteStore {
  return new SqliteStore(openDatabase(dataDir, newClusterId));
}

export class SqliteStore implements Store {
  private readonly opened: OpenedDatabase;
  private readonly database: DatabaseSync;
  private readonly files: StoreFiles;
  /** Prepared once: preparing costs more than running most of these. */
  private readonly prepared = new Map<string, StatementSync>();

  constructor(opened: OpenedDatabase) {
    this.opened = opened;
    this.database = opened.database;
    this.files = opened.files;
  }

  private statement(sql: string): StatementSync {
    let statement = this.prepared.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(sql);
      this.prepared.set(sql, statement);
    }
    return statement;
  }

  private rows<Row>(sql: string, parameters: Parameters = {}): Row[] {
    return this.statement(sql).all(parameters) as Row[];
  }

  /** Runs a write whose guard must let exactly one row through. */
  private writeOne(sql: string, parameters: Parameters, what: string): void {
    const { changes } = this.statement(sql).run(parameters);
    if (changes !== 1)
      throw new StoreError('conflict', `the store refused to change ${what}: it had ended already`);
  }

  async load(): Promise<Snapshot> {
    const [positions] = this.rows<{ submit_seq: number; event_seq: number }>(selectPositions.sql);
    const subjects = this.rows<{ subject: string; subject_seq: number }>(selectSubjectPositions.sql, {
      cluster: clusterSubject,
    });
    const activeJobs = this.rows<JobWithAttemptRow>(selectActiveJobs.sql).map(
      (row) => recordFromRow(row).job,
    );
    return {
      clusterId: this.opened.clusterId,
      activeJobs,
      outcomes: await this.readOutcomes(activeJobs.flatMap(({ spec }) => spec.after as readonly JobId[])),
      nodes: this.rows<NodeRow>(selectNodes.sql).map(nodeFromRow),
      credentials: this.rows<ArgumentOf<typeof selectCredentials.fromRow>>(selectCredentials.sql).map(
        selectCredentials.fromRow,
      ),
      lastSubmitSeq: positions?.submit_seq ?? 0,
      lastEventSeq: positions?.event_seq ?? 0,
      subjectSeqs: new Map(subjects.map((row) => [row.subject, row.subject_seq])),
    };
  }

  async commit(batch: Batch): Promise<void> {
    try {
      this.database.exec('begin immediate');
      this.writeBatch(batch);
      this.database.exec('commit');
    } catch (error) {
      if (this.database.isTransaction) this.database.exec('rollback');
      throw asStoreError(error);
    }
    this.files.follow({
      eventSeq: batch.events.at(-1)?.seq ?? 0,
      submitSeq: batch.newJobs.reduce((newest, job) => Math.max(newest, job.submitSeq), 0),
    });
    await this.files.acknowledge();
  }

  private writeBatch(batch: Batch): void {
    for (const job of batch.newJobs) this.statement(insertJob.sql).run(insertJob.parameters(jobToRow(job)));
    for (const job of batch.jobs) this.writeOne(updateJob.sql, updateJob.parameters(jobToRow(job)), job.id);
    for (const { jobId, attempt } of batch.attempts) {
      const parameters = upsertAttempt.parameters(attemptToRow(jobId, attempt));
      this.writeOne(upsertAttempt.sql, parameters, `${jobId}, attempt ${attempt.number}`);
    }
    for (const node of batch.nodes)
      this.statement(upsertNode.sql).run(upsertNode.parameters(nodeToRow(node)));
    for (const name of batch.removedNodes) this.statement(removeNode.sql).run({ name });
    for (const request of batch.requests)
      this.statement(insertRequest.sql).run(insertRequest.parameters(request));
    for (const id of batch.removedCredentials) this.statement(deleteCredential.sql).run({ id });
    for (const credential of batch.credentials) {
      this.statement(upsertCredential.sql).run(upsertCredential.parameters(credential));
    }
    for (const event of batch.events)
      this.statement(insertEvent.sql).run(insertEvent.parameters(eventToRow(event)));
  }

  async readJob(id: JobId): Promise<JobRecord | null> {
    const [row] = this.rows<JobWithAttemptRow>(selectJob.sql, { id });
    if (row === undefined) return null;
    const attempts = this.rows<AttemptRow>(selectAttempts.sql, { job_id: id }).map(attemptFromRow);
    return { job: recordFromRow(row).job, attempts };
  }

  async listJobs(query: JobQuery): Promise<JobPage> {
    const found = this.submitSeqs(query);
    const records: JobRecord[] = [];
    let size = 0;
    for (const seq of found.slice(0, query.limit)) {
      const [row] = this.rows<JobWithAttemptRow>(selectJobBySubmitSeq.sql, { seq });
      if (row === undefined) continue;
      size += row.spec.length + row.body.length + (row.attempt_body?.length ?? 0);
      if (records.length > 0 && size > query.sizeMax) break;
      records.push(recordFromRow(row));
    }
    return { records, more: records.length < found.length };
  }

  /** Of the jobs that match, newest first: one more than asked for, to tell whether there are more. */
  private submitSeqs({ states, arrayId, name, limit, beforeSubmitSeq }: JobQuery): readonly number[] {
    const isNarrowed = arrayId !== null || name !== null;
    // The indexes of names and arrays are in order within a state only.
    const wanted: readonly (JobStateKind | null)[] =
      states.length > 0 ? [...new Set(states)] : isNarrowed ? jobStates : [null];
    const found = wanted.flatMap((state) => {
      const filter = { byArray: arrayId !== null, byName: name !== null, byState: state !== null };
      const rows = this.rows<{ submit_seq: number }>(selectSubmitSeqs(filter), {
        before: beforeSubmitSeq ?? Number.MAX_SAFE_INTEGER,
        limit: limit + 1,
        ...(arrayId === null ? {} : { array_id: arrayId }),
        ...(name === null ? {} : { name }),
        ...(state === null ? {} : { state }),
      });
      return rows.map((row) => row.submit_seq);
    });
    return found.sort((a, b) => b - a).slice(0, limit + 1);
  }

  async readOutcomes(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, TerminalJobState>> {
    if (ids.length === 0) return new Map();
    const rows = this.rows<{ id: JobId; state: TerminalJobState }>(selectOutcomes.sql, {
      ids: JSON.stringify(ids),
    });
    return new Map(rows.map(({ id, state }) => [id, state]));
  }

  async findJobIds(prefix: string, limit: number): Promise<readonly JobId[]> {
    const rows = this.rows<{ id: JobId }>(selectJobIds.sql, {
      from: prefix,
      to: `${prefix}\u{10ffff}`,
      limit,
    });
    return rows.map((row) => row.id);
  }

  async readRequest(requestId: string) {
    const [row] = this.rows<ArgumentOf<typeof selectRequest.fromRow>>(selectRequest.sql, {
      request_id: requestId,
    });
    return row === undefined ? null : selectRequest.fromRow(row);
  }

  async readEvents(sinceSeq: number, limit: number, subject: string | null) {
    const all = { since_seq: sinceSeq, limit };
    const rows =
      subject === null
        ? this.statement(selectEvents.sql).iterate(all)
        : this.statement(selectEventsOfSubject.sql).iterate({ ...all, subject });
    const events: StoredEvent[] = [];
    let size = 0;
    for (const row of rows as Iterable<EventRow>) {
      events.push(eventFromRow(row));
      size += row.data.length;
      if (size > eventsSizeMax) break;
    }
    return events;
  }

  async readMeta(name: string): Promise<string | null> {
    return this.rows<{ value: string }>(selectMeta.sql, { name })[0]?.value ?? null;
  }

  async writeMeta(name: string, value: string): Promise<void> {
    try {
      this.statement(upsertMeta.sql).run({ name, value });
    } catch (error) {
      throw asStoreError(error);
    }
    this.files.follow();
    await this.files.acknowledge();
  }

  get nextPage(): number | null {
    return this.opened.nextPage;
  }

  comparePages(first: number): ReturnType<StoreFiles['compare']> {
    return this.files.compare(first);
  }

  /** The next start will refuse the store. @returns why it cannot be served any longer */
  recordDamage(damage: string): StoreError {
    this.files.recordDamage(damage);
    return damaged(this.files.paths, damage);
  }

  /** A copy of the store as it is now, in pieces; see `backup.ts`. @param takenAtMs wall clock */
  backup(takenAtMs: number): AsyncIterable<Buffer> {
    return backupPieces(this.files, { clusterId: this.opened.clusterId, takenAtMs });
  }

  async close(): Promise<void> {
    this.prepared.clear();
    closeDatabase(this.opened);
    this.opened.lock.release();
  }
}

/** The one argument of a function: what a statement's row looks like. */
type ArgumentOf<F extends (argument: never) => unknown> = F extends (argument: infer A) => unknown
  ? A
  : never;

function recordFromRow(row: JobWithAttemptRow): JobRecord {
  const attemptRow = newestAttemptRow(row);
  const newest: Attempt | null = attemptRow === null ? null : attemptFromRow(attemptRow);
  return { job: jobFromRow(row, newest), attempts: newest === null ? [] : [newest] };
}
