/**
 * The committed state in memory, and the draft in which a batch of commands changes it (G1 and G5 of docs/guarantees.md).
 * Commands run one after the other on a Draft, which shows the state with their changes in it. The draft becomes the state
 * only after its batch is committed. A batch that fails changes nothing.
 */
import { assertInvariant } from '@muster/common/errors';
import type { NewEvent } from '@muster/common/eventKinds';
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import { type Caller, callerName, coordinatorPart } from '../caller.ts';
import type { Attempt, AttemptFloor, Job, Node, StoredEvent } from '../model.ts';
import type {
  Batch,
  Credential,
  JobArrayRecord,
  RequestRecord,
  Snapshot,
  StoredOutcome,
} from '../store/store.ts';
import { noteInIndexes } from './activeIndexes.ts';
import { type Alerts, alertsOf, DraftedAlerts } from './alerts.ts';
import { BudgetJobs } from './budgetJobs.ts';
import { type Committed, removedOf } from './committed.ts';
import { type ArrayProgress, noteForDependents, progressOf } from './dependencies.ts';
import { activeJobsOf } from './draftedActiveJobs.ts';
import { DraftedArrays } from './draftedArrays.ts';
import { DraftedCredentials } from './draftedCredentials.ts';
import { DraftedNodes } from './draftedNodes.ts';
import { DraftedSecrets } from './draftedSecrets.ts';
import { forgetOutcomes } from './endedJobs.ts';
import { DraftedEvaluations, type Evaluations, evaluationsOf } from './evaluations.ts';
import { directoryOf, JobDirectories } from './jobDirectories.ts';
import { JobGroups, type JobsToPlan } from './jobGroups.ts';
import { DraftedPeople, type People, peopleOf, type SetUndoably } from './people.ts';
import { DraftedPipelines, type Pipelines, pipelinesOf } from './pipelines.ts';
import { QueuedSize } from './queuedSize.ts';
import { secretsOf } from './secrets.ts';
import { DraftedSweeps, type Sweeps, sweepsOf } from './sweeps.ts';

export class ClusterState {
  readonly clusterId: string;
  /** Jobs that have not ended. */
  readonly jobs = new Map<JobId, Job>();
  /** The same jobs, in the groups that scheduling uses. */
  readonly groups = new JobGroups();
  /** The same jobs, by their checkpoint directories. */
  readonly directories = new JobDirectories();
  /** The same jobs, by their budgets. */
  readonly budgetJobs = new BudgetJobs();
  /** What the queued ones of them take. */
  readonly queued = new QueuedSize();
  private readonly inMemory: (job: Job) => Job;
  /** Arrays whose jobs are not all stored yet. */
  readonly arrays: Map<ArrayId, JobArrayRecord>;
  /** How jobs have ended: those that active jobs depend on, and those that ended last. The store has the others. */
  readonly outcomes: Map<JobId, StoredOutcome>;
  readonly successors: Map<JobId, JobId>;
  readonly arrayFailures: Map<ArrayId, Set<JobId>>;
  /** The number of jobs of each array that have not ended. */
  readonly activeInArrays = new Map<ArrayId, number>();
  readonly nodes: Map<NodeName, Node>;
  readonly people: People;
  readonly alerts: Alerts;
  readonly sweeps: Sweeps;
  readonly pipelines: Pipelines;
  readonly evaluations: Evaluations;
  /** Credentials by id. */
  readonly credentials: Map<string, Credential>;
  /** Ids of credentials by the hashes of the secrets that are valid for them. */
  private readonly credentialIds = new Map<string, string>();
  readonly subjectSeqs: Map<string, number>;
  lastSubmitSeq: number;
  lastEventSeq: number;
  attemptFloor: AttemptFloor = { number: 0, submitSeqMax: 0 };

  constructor(snapshot: Snapshot) {
    this.clusterId = snapshot.clusterId;
    this.inMemory = snapshot.inMemory ?? ((job) => job);
    this.arrays = new Map(snapshot.unfilledArrays.map((array) => [array.id, array]));
    this.outcomes = new Map(snapshot.outcomes);
    this.successors = new Map(snapshot.successors);
    this.arrayFailures = new Map(snapshot.arrayFailures);
    this.nodes = new Map(snapshot.nodes.map((node) => [node.name, node]));
    this.people = peopleOf(snapshot);
    this.alerts = alertsOf(snapshot.alerts);
    this.sweeps = sweepsOf(snapshot.sweeps);
    this.pipelines = pipelinesOf(snapshot.pipelines);
    this.evaluations = evaluationsOf(snapshot.evaluations);
    this.credentials = new Map();
    for (const each of snapshot.credentials) this.setCredential(each.id, each);
    this.subjectSeqs = new Map(snapshot.subjectSeqs);
    this.lastSubmitSeq = snapshot.lastSubmitSeq;
    this.lastEventSeq = snapshot.lastEventSeq;
    for (const job of snapshot.activeJobs) this.noteJob(job);
  }

  /** Records a job as it is now. */
  noteJob(job: Job): void {
    noteForDependents(this, job);
    noteInIndexes(this, isTerminal(job.state.kind) ? job : this.inMemory(job));
  }

  /** @param credential null: it was removed */
  setCredential(id: string, credential: Credential | null): void {
    for (const hash of secretsOf(this.credentials.get(id))) this.credentialIds.delete(hash);
    if (credential === null) this.credentials.delete(id);
    else this.credentials.set(id, credential);
    for (const hash of secretsOf(credential)) this.credentialIds.set(hash, id);
  }

  credentialOf(secretHash: string): Credential | undefined {
    return this.credentials.get(this.credentialIds.get(secretHash) ?? '');
  }
}

export class Draft {
  readonly base: ClusterState;
  readonly people: DraftedPeople;
  readonly alerts: DraftedAlerts;
  readonly sweeps: DraftedSweeps;
  readonly pipelines: DraftedPipelines;
  readonly evaluations: DraftedEvaluations;
  readonly secrets = new DraftedSecrets((map, key, value) => this.set(map, key, value));
  private readonly jobs = new Map<JobId, Job>();
  private readonly newJobIds = new Set<JobId>();
  private readonly newSuccessors = new Map<JobId, JobId>();
  private readonly attempts = new Map<string, { readonly jobId: JobId; readonly attempt: Attempt }>();
  readonly arrays: DraftedArrays;
  private readonly nodes: DraftedNodes;
  private readonly credentials: DraftedCredentials;
  private readonly requests = new Map<string, RequestRecord>();
  private readonly events: StoredEvent[] = [];
  private readonly subjectSeqs = new Map<string, number>();
  private submitSeq: number;
  private eventSeq: number;
  /** The caller of the command that runs. A draft that only serves as a view of the state runs none. */
  private caller: Caller = coordinatorPart('view');
  /** Functions that undo the changes of the command that runs, the newest last. */
  private undoes: (() => void)[] = [];

  constructor(base: ClusterState) {
    this.base = base;
    const set: SetUndoably = (map, key, value) => this.set(map, key, value);
    this.people = new DraftedPeople(base.people, set);
    this.alerts = new DraftedAlerts(base.alerts, set);
    this.sweeps = new DraftedSweeps(base.sweeps, set);
    this.pipelines = new DraftedPipelines(base.pipelines, set);
    this.evaluations = new DraftedEvaluations(base.evaluations, set);
    this.credentials = new DraftedCredentials(base, set);
    this.nodes = new DraftedNodes(base.nodes, set);
    this.arrays = new DraftedArrays(base.arrays, set);
    this.submitSeq = base.lastSubmitSeq;
    this.eventSeq = base.lastEventSeq;
  }

  /**
   * Runs a command. One that throws leaves the draft as it found it, because half of a refused command must not be committed
   * with the others of its batch.
   * @param by the caller, named by each event of the command
   */
  attempt<T>(by: Caller, command: () => T): T {
    const { submitSeq, eventSeq } = this;
    const eventCount = this.events.length;
    this.undoes = [];
    this.caller = by;
    try {
      return command();
    } catch (error) {
      for (const undo of this.undoes.reverse()) undo();
      this.submitSeq = submitSeq;
      this.eventSeq = eventSeq;
      this.events.length = eventCount;
      throw error;
    }
  }

  private set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    this.undoes.push(() => void (before === undefined ? map.delete(key) : map.set(key, before)));
    map.set(key, value);
  }

  /** The caller of the command that runs. */
  get by(): Caller {
    return this.caller;
  }

  /** A job that has not ended, as the draft sees it. */
  job(id: JobId): Job | undefined {
    const drafted = this.jobs.get(id);
    if (drafted !== undefined) return isTerminal(drafted.state.kind) ? undefined : drafted;
    return this.base.jobs.get(id);
  }

  /** Every job that has not ended. */
  activeJobs(): Iterable<Job> {
    return activeJobsOf(this.base.jobs, this.jobs, this.newJobIds);
  }

  /** Jobs that have not ended and save in this directory. */
  jobsSavingIn(directory: string): readonly Job[] {
    const ids = [...this.base.directories.savingIn(directory), ...this.newJobIds];
    return ids.flatMap((id) => this.job(id) ?? []).filter((job) => directoryOf(job) === directory);
  }

  /** Jobs that have not ended and count in this budget. */
  jobsOfBudget(id: string): readonly Job[] {
    const ids = [...this.base.budgetJobs.of(id), ...this.newJobIds];
    return ids.flatMap((each) => this.job(each) ?? []).filter(({ budget }) => budget === id);
  }

  /** Every job that has not ended; of equal jobs of an array, only the first. */
  jobsToPlan(): JobsToPlan {
    return this.base.groups.toPlan(this.jobs);
  }

  outcome(id: JobId): StoredOutcome | undefined {
    const drafted = this.jobs.get(id);
    if (drafted !== undefined && isTerminal(drafted.state.kind)) return drafted.state.kind;
    return this.base.outcomes.get(id);
  }

  successor(id: JobId): JobId | undefined {
    return this.newSuccessors.get(id) ?? this.base.successors.get(id);
  }

  /** The progress of an array whose record is in memory. */
  arrayProgress(id: ArrayId): ArrayProgress {
    const array = this.arrays.get(id);
    const progress = progressOf(this.base, this.jobs.values(), id, (each) => this.successor(each));
    return array !== undefined && array.filled < array.size ? { ...progress, isActive: true } : progress;
  }

  /** Whether a job exists, as far as memory has it. A job that ended long ago is found after `learnOutcomes` only. */
  exists(id: JobId): boolean {
    return this.jobs.has(id) || this.base.jobs.has(id) || this.base.outcomes.has(id);
  }

  node(name: NodeName): Node | undefined {
    return this.nodes.get(name);
  }

  everyNode(): readonly Node[] {
    return this.nodes.every();
  }

  credential(id: string): Credential | undefined {
    return this.credentials.get(id);
  }

  /** The credential for which this secret is valid. */
  credentialOf(secretHash: string): Credential | undefined {
    return this.credentials.ofSecret(secretHash);
  }

  /** Credentials of a node, join tokens included; or those of the coordinator, by their kind. */
  credentialsOf(subject: string): readonly Credential[] {
    return this.everyCredential().filter((each) => each.subject === subject);
  }

  everyCredential(): readonly Credential[] {
    return this.credentials.every();
  }

  /** Takes `count` places in the order of submission. @returns the first of them */
  takeSubmitSeqs(count: number): number {
    const first = this.submitSeq + 1;
    this.submitSeq += count;
    return first;
  }

  addJob(job: Job): void {
    assertInvariant(!this.exists(job.id), 'G1', `the id ${job.id} is in use already`);
    this.set(this.jobs, job.id, job);
    this.newJobIds.add(job.id);
    if (job.requeuedFrom !== null) this.set(this.newSuccessors, job.requeuedFrom, job.id);
    this.undoes.push(() => void this.newJobIds.delete(job.id));
  }

  putJob(job: Job): void {
    assertInvariant(this.job(job.id) !== undefined, 'G1', `${job.id} has ended or never existed`);
    this.set(this.jobs, job.id, job);
  }

  putAttempt(jobId: JobId, attempt: Attempt): void {
    this.set(this.attempts, `${jobId}.${attempt.number}`, { jobId, attempt });
  }

  putNode(node: Node): void {
    this.nodes.put(node.name, node, true);
  }

  /** Removes a node. Its name may be given to another node from now on. */
  removeNode(name: NodeName): void {
    this.nodes.put(name, null, true);
  }

  /** Changes a node without a commit of its own, for example when it was seen last. It is stored with its next change. */
  noteNode(node: Node): void {
    this.nodes.put(node.name, node, false);
  }

  putCredential(credential: Credential): void {
    this.credentials.put(credential.id, credential);
  }

  removeCredential({ id }: Pick<Credential, 'id'>): void {
    this.credentials.put(id, null);
  }

  /** @returns the request */
  putRequest(request: RequestRecord): RequestRecord {
    this.set(this.requests, request.requestId, request);
    return request;
  }

  /** A submit or requeue of this batch. Committed ones are in the store. */
  request(requestId: string): RequestRecord | undefined {
    return this.requests.get(requestId);
  }

  /** @param timeMs wall clock, for display */
  emit(event: NewEvent, timeMs: number): void {
    this.eventSeq += 1;
    const { subject } = event;
    const subjectSeq = (this.subjectSeqs.get(subject) ?? this.base.subjectSeqs.get(subject) ?? 0) + 1;
    this.set(this.subjectSeqs, subject, subjectSeq);
    const job = this.jobs.get(subject as JobId) ?? this.base.jobs.get(subject as JobId);
    this.events.push({
      ...event,
      ...callerName(this.caller),
      seq: this.eventSeq,
      id: `${this.base.clusterId}-${this.eventSeq}`,
      subjectSeq,
      timeMs,
      ...(job?.traceparent == null ? {} : { traceparent: job.traceparent }),
    });
  }

  get nextEventSeq(): number {
    return this.eventSeq + 1;
  }

  /** The number of changes that a commit of the draft writes. A turn of the loop is limited by it. */
  get size(): number {
    return this.jobs.size + this.events.length;
  }

  /** Whether there is nothing to store. */
  isEmpty(): boolean {
    return Object.values(this.toBatch()).every((rows) => rows.length === 0);
  }

  toBatch(): Batch {
    const changed = [...this.jobs.values()];
    return {
      ...this.arrays.toBatch(),
      newJobs: changed.filter((job) => this.newJobIds.has(job.id)),
      jobs: changed.filter((job) => !this.newJobIds.has(job.id)),
      attempts: [...this.attempts.values()],
      ...this.nodes.toBatch(),
      requests: [...this.requests.values()],
      ...this.credentials.toBatch(),
      ...this.people.toBatch(),
      ...this.secrets.toBatch(),
      ...this.alerts.toBatch(),
      ...this.sweeps.toBatch(),
      ...this.pipelines.toBatch(),
      ...this.evaluations.toBatch(),
      events: this.events,
    };
  }

  /** Makes the committed draft the state. */
  apply(): Committed {
    const { base } = this;
    for (const job of this.jobs.values()) base.noteJob(job);
    this.arrays.apply();
    for (const [id, credential] of this.credentials.changed) base.setCredential(id, credential);
    for (const part of [this.people, this.sweeps, this.pipelines, this.evaluations]) part.apply();
    for (const [subject, seq] of this.subjectSeqs) base.subjectSeqs.set(subject, seq);
    for (const job of this.jobs.values()) if (isTerminal(job.state.kind)) base.subjectSeqs.delete(job.id);
    forgetOutcomes(base);
    base.lastSubmitSeq = this.submitSeq;
    base.lastEventSeq = this.eventSeq;
    return {
      jobs: [...this.jobs.values()],
      attempts: [...this.attempts.values()],
      events: this.events,
      endedCredentials: removedOf(this.credentials.changed),
      removedNodes: this.nodes.apply(),
      changedUsers: [...this.people.users.keys()],
      changedAlerts: this.alerts.apply(),
    };
  }
}
