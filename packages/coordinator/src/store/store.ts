/**
 * What the coordinator needs of durable storage. A commit is all or nothing and durable when its promise resolves;
 * one contract suite (contract.ts) runs against every implementation.
 */
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import type { Project, TokenScope, User } from '@muster/common/people';
import type { JobSpec } from '@muster/common/spec/types';
import type { JobStateKind, TerminalJobState } from '@muster/common/states';
import type { Caller } from '../caller.ts';
import type { Attempt, Budget, Job, Node, StoredEvent } from '../model.ts';
import { type AlertChanges, noAlertChanges, type StoredAlerts } from './alerts.ts';
import { type EvaluationChanges, type JobEvaluations, noEvaluationChanges } from './evaluations.ts';
import { noPipelineChanges, type PipelineChanges, type StoredPipelines } from './pipelines.ts';
import type { RetentionStore } from './retention.ts';
import type { SecretStore, StoredSecret } from './secrets.ts';
import { noSweepChanges, type StoredSweeps, type SweepChanges } from './sweeps.ts';

/** Rows and events of one or more commands, in one transaction. */
export interface Batch extends AlertChanges, SweepChanges, PipelineChanges, EvaluationChanges {
  readonly newArrays: readonly JobArrayRecord[];
  /** Known arrays of which more jobs are stored now. */
  readonly arrays: readonly JobArrayRecord[];
  readonly newJobs: readonly Job[];
  readonly jobs: readonly Job[];
  readonly attempts: readonly { readonly jobId: JobId; readonly attempt: Attempt }[];
  readonly nodes: readonly Node[];
  /** Of such a name only the numbers of its events are kept: those of a later node with the same name continue from them. */
  readonly removedNodes: readonly NodeName[];
  readonly requests: readonly RequestRecord[];
  readonly credentials: readonly Credential[];
  /** Ids of those to delete; one that is not there is no error. */
  readonly removedCredentials: readonly string[];
  readonly users: readonly User[];
  /** Names of those to delete. */
  readonly removedUsers: readonly string[];
  readonly projects: readonly Project[];
  readonly budgets: readonly Budget[];
  /** Ids of those to delete. */
  readonly removedBudgets: readonly string[];
  readonly secrets: readonly StoredSecret[];
  /** Those to delete, as `secretId` names them; one that is not there is no error. */
  readonly removedSecrets: readonly string[];
  readonly events: readonly StoredEvent[];
}

export const emptyBatch: Batch = {
  newArrays: [],
  arrays: [],
  newJobs: [],
  jobs: [],
  attempts: [],
  nodes: [],
  removedNodes: [],
  requests: [],
  credentials: [],
  removedCredentials: [],
  users: [],
  removedUsers: [],
  projects: [],
  budgets: [],
  removedBudgets: [],
  secrets: [],
  removedSecrets: [],
  ...noAlertChanges,
  ...noSweepChanges,
  ...noPipelineChanges,
  ...noEvaluationChanges,
  events: [],
};

/**
 * What the jobs of an array share, stored once and before them. Its jobs are stored after it, some at a time: once the array is
 * stored all of them will be, whatever happens in between.
 */
export interface JobArrayRecord {
  readonly id: ArrayId;
  readonly spec: JobSpec;
  readonly size: number;
  /** So many of its jobs are stored, those of the lowest indexes; all of them once it is `size`. */
  readonly filled: number;
  /** Indexes behind those whose jobs are stored already, because somebody asked for them. */
  readonly early: ReadonlySet<number>;
  /**
   * The place of its first job in the order of submission. Those of the others follow it, whenever they are stored.
   */
  readonly firstSubmitSeq: number;
  /** Whose submit it was. */
  readonly by: Caller;
  readonly submittedAtMs: number;
}

/** Remembers a submit or a requeue, so that repeating it has no second effect and gets the same answer. */
export interface RequestRecord {
  readonly requestId: string;
  /** Digest of spec, array size and the job to requeue: the same id with another intent is refused. */
  readonly digest: string;
  /** The jobs that it made, unless it made an array; of a requeue that stopped a running job, that job. */
  readonly jobIds: readonly JobId[];
  readonly arrayId: string | null;
  readonly createdAtMs: number;
}

/** Who may call. Secrets are stored as SHA-256 only. */
export interface Credential {
  readonly id: string;
  readonly kind: 'admin' | 'agent' | 'join' | 'user' | 'login';
  /** Name of a node for agents and join tokens, of a user for `user` and `login`. */
  readonly subject: string;
  readonly secretHash: string;
  readonly createdAtMs: number;
  /** Wall clock; null: does not expire. */
  readonly expiresAtMs: number | null;
  /** A join token or login code that was used, with the hash of the credential it was traded for. */
  readonly usedFor: string | null;
  /** Of an agent that renews it: the secret that takes the place of the other once the agent has shown that it keeps it. */
  readonly nextHash: string | null;
  /** Wall clock, at most an hour old; null: never used. */
  readonly lastUsedAtMs: number | null;
  /** A join token that ends the node's credential when it is used. */
  readonly replaces: boolean;
  /** What the user of the token calls it; empty for all that are no tokens of users. */
  readonly label: string;
  readonly scope: TokenScope;
}

export interface Snapshot {
  readonly clusterId: string;
  /** Jobs that have not ended. */
  readonly activeJobs: readonly Job[];
  /** Makes of a stored job the one that memory keeps. Absent: the same. */
  readonly inMemory?: (job: Job) => Job;
  /** Arrays whose jobs are not all stored. */
  readonly unfilledArrays: readonly JobArrayRecord[];
  /** How the ended jobs that active ones come after have ended. */
  readonly outcomes: ReadonlyMap<JobId, StoredOutcome>;
  /** By jobs that active ones come after and that were requeued since, the newest that runs each again. */
  readonly successors: ReadonlyMap<JobId, JobId>;
  /** Of the arrays that active jobs come after, see `readArrayFailures`. */
  readonly arrayFailures: ReadonlyMap<ArrayId, Set<JobId>>;
  readonly nodes: readonly Node[];
  readonly credentials: readonly Credential[];
  readonly users: readonly User[];
  /** Those that an admin has configured. */
  readonly projects: readonly Project[];
  readonly alerts: StoredAlerts;
  readonly sweeps: StoredSweeps;
  readonly pipelines: StoredPipelines;
  /** By the job that is evaluated. */
  readonly evaluations: readonly JobEvaluations[];
  /** Of tokens of users. */
  readonly budgets: readonly Budget[];
  readonly lastSubmitSeq: number;
  readonly lastEventSeq: number;
  /** Last per-subject event number of active jobs, nodes and the cluster. */
  readonly subjectSeqs: ReadonlyMap<string, number>;
}

export interface JobRecord {
  readonly job: Job;
  /** Oldest first. */
  readonly attempts: readonly Attempt[];
}

export interface JobQuery {
  readonly states: readonly JobStateKind[];
  readonly arrayId: string | null;
  readonly name: string | null;
  readonly limit: number;
  /** Characters of what is stored of the jobs of a page, as a measure of its size; a page has at least one job. */
  readonly sizeMax: number;
  /** Only jobs with a lower submitSeq; null: from the newest. */
  readonly beforeSubmitSeq: number | null;
  readonly also?: JobFilters;
}

/** What a list may be narrowed by beside; each has an index, and a list with several looks at rows, some at a time. */
export interface JobFilters {
  readonly project?: string | undefined;
  readonly user?: string | undefined;
  /** null: whatever its value. */
  readonly label?: { readonly name: string; readonly value: string | null } | undefined;
  /** Wall clock: submitted then or later. */
  readonly sinceMs?: number | undefined;
  readonly visible?: VisibleJobs | undefined;
}

/** The jobs that a user may see. */
export interface VisibleJobs {
  readonly user: string;
  /** Of these only jobs of the user. */
  readonly hiddenProjects: readonly string[];
  /** None of other projects; null: of all. */
  readonly onlyProjects: readonly string[] | null;
}

/** A page of a list of jobs. */
export interface JobPage {
  readonly records: readonly JobRecord[];
  /** More jobs match. */
  readonly more: boolean;
}

/** How a job ended; `removed`: long ago, and retention has removed it. */
export type StoredOutcome = TerminalJobState | 'removed';

export interface ListedJobId {
  readonly id: JobId;
  readonly submitSeq: number;
}

/** What a user may call jobs and arrays by. Each look-up reads an index only, however many jobs are stored. */
export interface NameStore {
  /** Ids of at most `limit` jobs that begin with `prefix`, in order. */
  jobIds(prefix: string, limit: number): Promise<readonly JobId[]>;
  /** The same of arrays, as far as there is a job of theirs. */
  arrayIds(prefix: string, limit: number): Promise<readonly ArrayId[]>;
  /** At most `limit` names of jobs that begin with `prefix`, each once, in order. */
  names(prefix: string, limit: number): Promise<readonly string[]>;
  /** The array of the newest job of that name that belongs to one. */
  newestArray(name: string): Promise<ArrayId | null>;
  /** The newest job of an array that has this index. */
  member(arrayId: ArrayId, index: number): Promise<JobId | null>;
}

export interface Store {
  load(): Promise<Snapshot>;

  /**
   * @throws {StoreError} `full` when there is no space: nothing was written, the batch may be tried again once there
   *   is. Any other kind: the state of the store is unknown and the process must end without acknowledging.
   */
  commit(batch: Batch): Promise<void>;

  readJob(id: JobId): Promise<JobRecord | null>;
  /** Newest first, each with its newest attempt only. Costs as much as the page, however many jobs are stored. */
  listJobs(query: JobQuery): Promise<JobPage>;
  /** The same list of ids and their numbers alone, whatever their size: cheap enough for thousands at once. */
  listJobIds(query: Omit<JobQuery, 'sizeMax'>): Promise<readonly ListedJobId[]>;
  /** Of these jobs, how those have ended that have. */
  readOutcomes(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, StoredOutcome>>;
  /** Of these jobs, for those that were requeued the newest that runs each again. */
  readSuccessors(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, JobId>>;
  /** Jobs of an array that failed or were cancelled and were not run again. */
  readArrayFailures(id: ArrayId): Promise<readonly JobId[]>;
  readRequest(requestId: string): Promise<RequestRecord | null>;
  /** Events with seq > sinceSeq, in order; of one subject when given. Fewer than `limit` when they are large; none: there is none. */
  readEvents(
    sinceSeq: number,
    limit: number,
    subject: JobId | NodeName | string | null,
  ): Promise<readonly StoredEvent[]>;

  readonly names: NameStore;
  readonly retention: RetentionStore;
  readonly secrets: SecretStore;

  /** Small durable values by name, such as the cursor of the NATS relay. */
  readMeta(name: string): Promise<string | null>;
  writeMeta(name: string, value: string): Promise<void>;

  close(): Promise<void>;
}

export type StoreErrorKind =
  /** No space left. */
  | 'full'
  /** Another coordinator holds it. */
  | 'locked'
  /** Written by a later release, or before the first one. */
  | 'unknown_schema'
  | 'damaged'
  /** Commits that were acknowledged are not there. */
  | 'behind'
  /** A store was here before and is gone. */
  | 'missing'
  | 'no_permission'
  /** A condition in a statement refused the write, because it would have broken a guarantee (docs/guarantees.md). */
  | 'conflict'
  | 'io';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly kind: StoreErrorKind;

  constructor(kind: StoreErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
