/** The embedded store: SQLite in WAL mode, one fsync per commit, one process per data directory. */

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { clusterSubject } from '@muster/common/eventKinds';
import type { ArrayId, JobId } from '@muster/common/ids';
import type { TerminalJobState } from '@muster/common/states';
import type { Attempt, Job, StoredEvent } from '../../model.ts';
import { StoredSpecs } from '../../spec/storedSpecs.ts';
import { nextRound } from '../../work/inOrder.ts';
import { indexAt } from '../arrayIndexes.ts';
import { dependencySnapshot } from '../dependencyMemory.ts';
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
import {
  deleteCredential,
  deleteUser,
  insertEvent,
  removeNodeRow,
  selectCredentials,
  selectEvents,
  selectEventsOfSubject,
  selectMeta,
  selectNodes,
  selectPositions,
  selectSubjectPositions,
  selectUsers,
  upsertCredential,
  upsertMeta,
  upsertNode,
  upsertProject,
  upsertUser,
} from '../statements/cluster.ts';
import {
  insertArray,
  insertJob,
  insertRequest,
  type JobWithAttemptRow,
  newestAttemptRow,
  selectActiveJobs,
  selectArrayFailures,
  selectArraySpec,
  selectAttempts,
  selectJob,
  selectJobSpec,
  selectOutcomes,
  selectRequest,
  selectStoredIndexes,
  selectSuccessors,
  selectUnfilledArrays,
  updateArrayProgress,
  updateJob,
  upsertAttempt,
} from '../statements/jobs.ts';
import { insertLabel } from '../statements/lists.ts';
import { selectRemovedJobs } from '../statements/retention.ts';
import { deleteSecret, upsertSecret } from '../statements/secrets.ts';
import {
  type Batch,
  type JobArrayRecord,
  type JobPage,
  type JobQuery,
  type JobRecord,
  type ListedJobId,
  type Snapshot,
  type Store,
  type StoredOutcome,
  StoreError,
} from '../store.ts';
import { ArraySpecs, type SharedSpec } from './arraySpecs.ts';
import type { AttachedFile } from './attached.ts';
import { backupPieces } from './backup.ts';
import { asStoreError, closeDatabase, type OpenedDatabase, openDatabase, type Upgrade } from './open.ts';
import type { OwnSpace } from './ownSpace.ts';
import { loadBudgets, loadProjects, writeBudgets } from './sqliteBudgets.ts';
import { isWanted, listedIds, sqliteNames } from './sqliteLists.ts';
import { loadNamed, writeNamed } from './sqliteNamed.ts';
import { sqliteRetention } from './sqliteRetention.ts';
import { sqliteSecrets } from './sqliteSecrets.ts';
import type { StoreFiles } from './storeFiles.ts';
import { Transactions } from './transactions.ts';

type Parameters = Record<string, SQLInputValue>;

/** Read between two rounds of the event loop. */
const jobsPerRound = 20;
/** Characters of the data of events in one read: enough for many, and read within milliseconds. */
const eventsSizeMax = 512 * 1024;

/**
 * @param dataDir absolute, exists
 * @param newClusterId id for a store that does not exist yet
 * @throws {StoreError} named by what is wrong with the store and what to do
 */
export function openSqliteStore(
  dataDir: string,
  newClusterId: () => string,
  onUpgrade: (upgrade: Upgrade) => void = () => {},
): SqliteStore {
  return new SqliteStore(openDatabase(dataDir, newClusterId, undefined, { onUpgrade }));
}

export class SqliteStore implements Store {
  private readonly opened: OpenedDatabase;
  private readonly database: DatabaseSync;
  private readonly files: StoreFiles;
  private readonly transactions: Transactions;
  /** Prepared once: preparing costs more than running most of these. */
  private readonly prepared = new Map<string, StatementSync>();
  readonly names = sqliteNames((sql, parameters) => this.rows(sql, parameters));
  readonly secrets = sqliteSecrets((sql, parameters) => this.rows(sql, parameters));
  readonly retention = sqliteRetention({
    rows: (sql, parameters) => this.rows(sql, parameters),
    change: (sql, parameters) => this.change(sql, parameters),
    transaction: (write) => this.transactions.run(write),
  });
  private readonly arraySpecs = new ArraySpecs(
    (id) => this.rows<{ spec: string }>(selectArraySpec.sql, { id })[0]?.spec,
  );

  private readonly specs = new StoredSpecs((id, arrayId) => this.specText(id, arrayId));
  private readonly inMemory = (job: Job) => this.specs.inMemory(job);

  constructor(opened: OpenedDatabase) {
    this.opened = opened;
    this.database = opened.database;
    this.files = opened.files;
    this.transactions = new Transactions(opened);
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
      throw new StoreError(
        'conflict',
        `the store refused to change ${what}: it has ended, or is at a later attempt (guarantee G6, docs/guarantees.md#g6)`,
      );
  }

  async load(): Promise<Snapshot> {
    const [positions] = this.rows<{ submit_seq: number; event_seq: number }>(selectPositions.sql);
    const subjects = this.rows<{ subject: string; subject_seq: number }>(selectSubjectPositions.sql, {
      cluster: clusterSubject,
    });
    const activeJobs: Job[] = [];
    // One at a time: together, the specs of all queued jobs may be larger than the memory.
    for (const row of this.statement(selectActiveJobs.sql).iterate() as Iterable<unknown>) {
      const { job } = this.record(row as JobWithAttemptRow);
      activeJobs.push(this.specs.inMemory(job, (row as JobWithAttemptRow).spec));
    }
    return {
      clusterId: this.opened.clusterId,
      activeJobs,
      inMemory: this.inMemory,
      unfilledArrays: this.unfilledArrays(),
      ...(await dependencySnapshot(this, activeJobs)),
      nodes: this.rows<NodeRow>(selectNodes.sql).map(nodeFromRow),
      credentials: this.rows<ArgumentOf<typeof selectCredentials.fromRow>>(selectCredentials.sql).map(
        selectCredentials.fromRow,
      ),
      users: this.rows<ArgumentOf<typeof selectUsers.fromRow>>(selectUsers.sql).map(selectUsers.fromRow),
      projects: loadProjects((sql) => this.rows<{ body: string }>(sql)),
      ...loadNamed((sql) => this.rows<{ body: string }>(sql)),
      budgets: loadBudgets((sql) => this.rows<{ body: string }>(sql)),
      lastSubmitSeq: positions?.submit_seq ?? 0,
      lastEventSeq: positions?.event_seq ?? 0,
      subjectSeqs: new Map(subjects.map((row) => [row.subject, row.subject_seq])),
    };
  }

  private unfilledArrays(): readonly JobArrayRecord[] {
    const rows = this.rows<ArgumentOf<typeof selectUnfilledArrays.fromRow>>(selectUnfilledArrays.sql);
    return rows.map(selectUnfilledArrays.fromRow).map((array) => {
      const wanted = { array_id: array.id, from_index: indexAt(array, array.filled) };
      const stored = this.rows<{ array_index: number }>(selectStoredIndexes.sql, wanted);
      return { ...array, early: new Set(stored.map((row) => row.array_index)) };
    });
  }

  async commit(batch: Batch): Promise<void> {
    await this.transactions.run(() => this.writeBatch(batch), {
      eventSeq: batch.events.at(-1)?.seq ?? 0,
      submitSeq: batch.newJobs.reduce((newest, job) => Math.max(newest, job.submitSeq), 0),
    });
  }

  /**
   * From here on, commits find their space even when other programs have filled the disk. See `ownSpace.ts`.
   * @param fillers number of megabytes to hold in the database; `OwnSpace.addFiller` adds them
   */
  keepOwnSpace(fillers: number): OwnSpace {
    return this.transactions.keepOwnSpace(fillers);
  }

  private writeBatch(batch: Batch): void {
    for (const array of batch.newArrays) this.statement(insertArray.sql).run(insertArray.parameters(array));
    for (const job of batch.newJobs) this.insertJob(job);
    for (const array of batch.arrays)
      this.writeOne(updateArrayProgress.sql, updateArrayProgress.parameters(array), array.id);
    for (const job of batch.jobs)
      this.writeOne(updateJob.sql, updateJob.parameters(jobToRow(job, '')), job.id);
    for (const { jobId, attempt } of batch.attempts) {
      const parameters = upsertAttempt.parameters(attemptToRow(jobId, attempt));
      this.writeOne(upsertAttempt.sql, parameters, `${jobId}, attempt ${attempt.number}`);
    }
    for (const node of batch.nodes)
      this.statement(upsertNode.sql).run(upsertNode.parameters(nodeToRow(node)));
    for (const name of batch.removedNodes) this.statement(removeNodeRow.sql).run({ name });
    for (const request of batch.requests)
      this.statement(insertRequest.sql).run(insertRequest.parameters(request));
    for (const id of batch.removedCredentials) this.statement(deleteCredential.sql).run({ id });
    for (const credential of batch.credentials) {
      this.statement(upsertCredential.sql).run(upsertCredential.parameters(credential));
    }
    for (const name of batch.removedUsers) this.statement(deleteUser.sql).run({ name });
    for (const user of batch.users) this.statement(upsertUser.sql).run(upsertUser.parameters(user));
    for (const project of batch.projects)
      this.statement(upsertProject.sql).run(upsertProject.parameters(project));
    writeBudgets((sql, parameters) => this.statement(sql).run(parameters), batch);
    for (const id of batch.removedSecrets) this.statement(deleteSecret.sql).run({ id });
    for (const secret of batch.secrets) this.statement(upsertSecret.sql).run(upsertSecret.parameters(secret));
    writeNamed((sql, parameters) => this.statement(sql).run(parameters), batch);
    for (const event of batch.events)
      this.statement(insertEvent.sql).run(insertEvent.parameters(eventToRow(event)));
  }

  private insertJob(job: Job): void {
    const row = jobToRow(job);
    const isShared = job.array !== null && this.arraySpecs.of(job.array.id)?.text === row.spec;
    this.statement(insertJob.sql).run(insertJob.parameters(isShared ? { ...row, spec: '' } : row));
    const place = { submit_seq: job.submitSeq, job_id: job.id };
    for (const [name, value] of Object.entries(job.spec.labels))
      this.statement(insertLabel.sql).run({ ...place, name, value });
  }

  async readJob(id: JobId): Promise<JobRecord | null> {
    const [row] = this.rows<JobWithAttemptRow>(selectJob.sql, { id });
    if (row === undefined) return null;
    const attempts = this.rows<AttemptRow>(selectAttempts.sql, { job_id: id }).map(attemptFromRow);
    return { job: this.record(row).job, attempts };
  }

  async listJobs(query: JobQuery): Promise<JobPage> {
    const found = await this.listJobIds({ ...query, limit: query.limit + 1 });
    const records: JobRecord[] = [];
    let size = 0;
    for (const [index, { id }] of found.slice(0, query.limit).entries()) {
      // A thousand jobs of years ago are a thousand places on the disk: other calls are served in between.
      if (index > 0 && index % jobsPerRound === 0) await nextRound();
      const [row] = this.rows<JobWithAttemptRow>(selectJob.sql, { id });
      if (row === undefined || !isWanted(query, row)) continue;
      const specSize = this.sharedSpec(row)?.text.length ?? row.spec.length;
      size += specSize + row.body.length + (row.attempt_body?.length ?? 0);
      if (records.length > 0 && size > query.sizeMax) break;
      records.push(this.record(row));
    }
    return { records, more: records.length < found.length };
  }

  async listJobIds(query: Omit<JobQuery, 'sizeMax'>): Promise<readonly ListedJobId[]> {
    return listedIds((sql, parameters) => this.rows(sql, parameters), query);
  }

  async readOutcomes(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, StoredOutcome>> {
    if (ids.length === 0) return new Map();
    const wanted = { ids: JSON.stringify(ids) };
    const ended = this.rows<{ id: JobId; state: TerminalJobState }>(selectOutcomes.sql, wanted);
    const removed = this.rows<{ id: JobId }>(selectRemovedJobs.sql, wanted);
    return new Map<JobId, StoredOutcome>([
      ...removed.map(({ id }) => [id, 'removed'] as const),
      ...ended.map(({ id, state }) => [id, state] as const),
    ]);
  }

  async readSuccessors(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, JobId>> {
    const wanted = { ids: JSON.stringify(ids) };
    const rows = this.rows<{ requeued_from: JobId; id: JobId }>(selectSuccessors.sql, wanted);
    return new Map(rows.map((row) => [row.requeued_from, row.id]));
  }

  async readArrayFailures(id: ArrayId): Promise<readonly JobId[]> {
    return this.rows<{ id: JobId }>(selectArrayFailures.sql, { array_id: id }).map((row) => row.id);
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
    this.files.acknowledge();
  }

  get nextPage(): number | null {
    return this.opened.nextPage;
  }

  comparePages(first: number): ReturnType<StoreFiles['compare']> {
    return this.files.compare(first);
  }

  /** The next start will refuse the store. @returns why it cannot be served any longer */
  recordDamage(damage: string): StoreError {
    return this.transactions.recordDamage(damage);
  }

  /** See `backup.ts`. @param takenAtMs wall clock @param readFiles key files, at the moment that is copied */
  backup(takenAtMs: number, readFiles: () => readonly AttachedFile[]): AsyncIterable<Buffer> {
    return backupPieces(this.files, { clusterId: this.opened.clusterId, takenAtMs, readFiles });
  }

  private specText(id: JobId, arrayId: ArrayId | null): string {
    const shared = arrayId === null ? undefined : this.arraySpecs.of(arrayId)?.text;
    const text = shared ?? this.rows<{ spec: string }>(selectJobSpec.sql, { id })[0]?.spec;
    if (text === undefined) throw new StoreError('conflict', `the spec of ${id} is no longer in the store`);
    return text;
  }

  private sharedSpec({ array_id, spec }: JobWithAttemptRow): SharedSpec | undefined {
    return array_id === null || spec !== '' ? undefined : this.arraySpecs.of(array_id);
  }

  private record(row: JobWithAttemptRow): JobRecord {
    const attemptRow = newestAttemptRow(row);
    const newest: Attempt | null = attemptRow === null ? null : attemptFromRow(attemptRow);
    const job = jobFromRow(row, newest, this.sharedSpec(row)?.spec);
    return { job, attempts: newest === null ? [] : [newest] };
  }

  private change(sql: string, parameters: Parameters): number {
    try {
      return Number(this.statement(sql).run(parameters).changes);
    } catch (error) {
      throw asStoreError(error);
    }
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
