/** The embedded store: SQLite in WAL mode, one fsync per commit, one process per data directory. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { JobId } from '@muster/common/ids';
import type { TerminalJobState } from '@muster/common/states';
import type { Attempt } from '../../model.ts';
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
import { selectAttempts } from '../statements/selectAttempts.ts';
import { selectCredentials } from '../statements/selectCredentials.ts';
import { selectEvents, selectEventsOfSubject } from '../statements/selectEvents.ts';
import { selectJobIds, selectOutcomes } from '../statements/selectJobIds.ts';
import {
  type JobWithAttemptRow,
  newestAttemptRow,
  selectActiveJobs,
  selectJob,
  selectJobList,
} from '../statements/selectJobs.ts';
import { selectNodes } from '../statements/selectNodes.ts';
import { selectPositions, selectSubjectPositions } from '../statements/selectPositions.ts';
import { selectRequest } from '../statements/selectRequest.ts';
import { updateJob } from '../statements/updateJob.ts';
import { upsertAttempt } from '../statements/upsertAttempt.ts';
import { upsertCredential } from '../statements/upsertCredential.ts';
import { upsertNode } from '../statements/upsertNode.ts';
import { type Batch, type JobRecord, type Snapshot, type Store, StoreError } from '../store.ts';
import { asStoreError, openDatabase } from './open.ts';

type Parameters = Record<string, SQLInputValue>;

/**
 * @param dataDir absolute, exists
 * @param newClusterId id for a store that does not exist yet
 * @throws {StoreError} named by what is wrong with the store and what to do
 */
export function openSqliteStore(dataDir: string, newClusterId: () => string): Store {
  const { database, clusterId } = openDatabase(dataDir, newClusterId);
  return new SqliteStore(database, clusterId);
}

class SqliteStore implements Store {
  private readonly database: DatabaseSync;
  private readonly clusterId: string;
  /** Prepared once: preparing costs more than running most of these. */
  private readonly prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, clusterId: string) {
    this.database = database;
    this.clusterId = clusterId;
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
    const outcomes = this.rows<{ id: JobId; state: TerminalJobState }>(selectOutcomes.sql);
    const subjects = this.rows<{ subject: string; subject_seq: number }>(selectSubjectPositions.sql);
    return {
      clusterId: this.clusterId,
      activeJobs: this.rows<JobWithAttemptRow>(selectActiveJobs.sql).map((row) => recordFromRow(row).job),
      outcomes: new Map(outcomes.map(({ id, state }) => [id, state])),
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

  async listJobs(query: ArgumentOf<Store['listJobs']>): Promise<readonly JobRecord[]> {
    const rows = this.rows<JobWithAttemptRow>(selectJobList.sql, {
      states: JSON.stringify(query.states),
      array_id: query.arrayId,
      name: query.name,
      before: query.beforeSubmitSeq,
      limit: query.limit,
    });
    return rows.map(recordFromRow);
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
    const rows =
      subject === null
        ? this.rows<EventRow>(selectEvents.sql, { since_seq: sinceSeq, limit })
        : this.rows<EventRow>(selectEventsOfSubject.sql, { since_seq: sinceSeq, limit, subject });
    return rows.map(eventFromRow);
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
  }

  async close(): Promise<void> {
    this.prepared.clear();
    this.database.close();
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
