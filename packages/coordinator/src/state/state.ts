/**
 * The committed truth in memory, and the draft in which a batch of commands changes it.
 *
 * Commands run one after the other on a Draft that looks like the state with their changes in it. Only after the
 * draft's batch is committed does it become the state; a batch that fails leaves nothing behind.
 */
import { assertInvariant } from '@muster/common/errors';
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import { isTerminal } from '@muster/common/states';
import { type Caller, coordinatorPart, nameOf } from '../caller.ts';
import type { Attempt, AttemptFloor, Job, NewEvent, Node, StoredEvent } from '../model.ts';
import type { Batch, Credential, JobArrayRecord, Outcome, RequestRecord, Snapshot } from '../store/store.ts';
import { type Committed, removedOf } from './committed.ts';
import { type ArrayProgress, noteForDependents, progressOf } from './dependencies.ts';
import { forgetOutcomes } from './endedJobs.ts';
import { directoryOf, JobDirectories } from './jobDirectories.ts';
import { JobGroups, type JobToPlan } from './jobGroups.ts';
import { secretsOf } from './secrets.ts';

export class ClusterState {
  readonly clusterId: string;
  /** Jobs that have not ended. */
  readonly jobs: Map<JobId, Job>;
  /** The same jobs, as scheduling looks at them. */
  readonly groups = new JobGroups();
  /** The same jobs, by their checkpoint directories. */
  readonly directories = new JobDirectories();
  /** Whose jobs are not all stored. */
  readonly arrays: Map<ArrayId, JobArrayRecord>;
  /** How jobs have ended, of those that active ones come after or that ended last; of all others the store tells. */
  readonly outcomes: Map<JobId, Outcome>;
  readonly successors: Map<JobId, JobId>;
  readonly arrayFailures: Map<ArrayId, Set<JobId>>;
  /** How many jobs of each array have not ended. */
  readonly activeInArrays = new Map<ArrayId, number>();
  readonly nodes: Map<NodeName, Node>;
  /** By id. */
  readonly credentials: Map<string, Credential>;
  /** Of each secret that a credential may be shown by, the id. */
  private readonly credentialIds = new Map<string, string>();
  readonly subjectSeqs: Map<string, number>;
  lastSubmitSeq: number;
  lastEventSeq: number;
  attemptFloor: AttemptFloor = { number: 0, submitSeqMax: 0 };

  constructor(snapshot: Snapshot) {
    this.clusterId = snapshot.clusterId;
    this.jobs = new Map();
    this.arrays = new Map(snapshot.unfilledArrays.map((array) => [array.id, array]));
    this.outcomes = new Map(snapshot.outcomes);
    this.successors = new Map(snapshot.successors);
    this.arrayFailures = new Map(snapshot.arrayFailures);
    this.nodes = new Map(snapshot.nodes.map((node) => [node.name, node]));
    this.credentials = new Map();
    for (const each of snapshot.credentials) this.setCredential(each.id, each);
    this.subjectSeqs = new Map(snapshot.subjectSeqs);
    this.lastSubmitSeq = snapshot.lastSubmitSeq;
    this.lastEventSeq = snapshot.lastEventSeq;
    for (const job of snapshot.activeJobs) this.noteJob(job);
  }

  /** Takes note of a job as it is now. */
  noteJob(job: Job): void {
    const { id, state } = job;
    noteForDependents(this, job);
    if (isTerminal(state.kind)) {
      this.jobs.delete(id);
      this.outcomes.set(id, state.kind);
    } else {
      this.jobs.set(id, job);
    }
    this.directories.note(job);
    this.groups.note(job);
  }

  /** @param credential null: it is none any more */
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
  private readonly jobs = new Map<JobId, Job>();
  private readonly newJobIds = new Set<JobId>();
  private readonly newSuccessors = new Map<JobId, JobId>();
  private readonly attempts = new Map<string, { readonly jobId: JobId; readonly attempt: Attempt }>();
  private readonly arrays = new Map<ArrayId, JobArrayRecord>();
  private readonly newArrays = new Map<ArrayId, true>();
  /** null: removed. */
  private readonly nodes = new Map<NodeName, Node | null>();
  /** Of these, the ones that are to be stored. */
  private readonly nodesToStore = new Map<NodeName, true>();
  /** By id; null: removed. */
  private readonly credentials = new Map<string, Credential | null>();
  private readonly requests = new Map<string, RequestRecord>();
  private readonly events: StoredEvent[] = [];
  private readonly subjectSeqs = new Map<string, number>();
  private submitSeq: number;
  private eventSeq: number;
  /** Whose command is under way. Views of the state are drafts, too, on which nobody commands. */
  private caller: Caller = coordinatorPart('view');
  /** What takes the command under way back, newest last. */
  private undoes: (() => void)[] = [];

  constructor(base: ClusterState) {
    this.base = base;
    this.submitSeq = base.lastSubmitSeq;
    this.eventSeq = base.lastEventSeq;
  }

  /**
   * Runs a command. One that throws leaves the draft as it found it, however far it had come: half of a refused
   * command must not be committed with those that share its batch.
   * @param by named by what the command emits
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

  /** On whose behalf the command under way runs. */
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
  *activeJobs(): Iterable<Job> {
    for (const job of this.base.jobs.values()) {
      const current = this.jobs.get(job.id) ?? job;
      if (!isTerminal(current.state.kind)) yield current;
    }
    for (const id of this.newJobIds) {
      const job = this.jobs.get(id);
      if (job !== undefined && !isTerminal(job.state.kind)) yield job;
    }
  }

  /** Those of them that save in this directory. */
  jobsSavingIn(directory: string): readonly Job[] {
    const ids = [...this.base.directories.savingIn(directory), ...this.newJobIds];
    return ids.flatMap((id) => this.job(id) ?? []).filter((job) => directoryOf(job) === directory);
  }

  /** Every job that has not ended, but of the equals in an array only the first. */
  jobsToPlan(): Iterable<JobToPlan> {
    return this.base.groups.toPlan(this.jobs);
  }

  outcome(id: JobId): Outcome | undefined {
    const drafted = this.jobs.get(id);
    if (drafted !== undefined && isTerminal(drafted.state.kind)) return drafted.state.kind;
    return this.base.outcomes.get(id);
  }

  successor(id: JobId): JobId | undefined {
    return this.newSuccessors.get(id) ?? this.base.successors.get(id);
  }

  /** Of an array of which memory has been told what it must know. */
  arrayProgress(id: ArrayId): ArrayProgress {
    const array = this.array(id);
    const progress = progressOf(this.base, this.jobs.values(), id, (each) => this.successor(each));
    return array !== undefined && array.filled < array.size ? { ...progress, isActive: true } : progress;
  }

  /** As far as memory tells: of a job that ended long ago it has to be learnt first. */
  exists(id: JobId): boolean {
    return this.jobs.has(id) || this.base.jobs.has(id) || this.base.outcomes.has(id);
  }

  /** As far as its jobs are not all stored. */
  array(id: ArrayId): JobArrayRecord | undefined {
    return this.arrays.get(id) ?? this.base.arrays.get(id);
  }

  addArray(array: JobArrayRecord): void {
    this.set(this.newArrays, array.id, true);
    this.putArray(array);
  }

  putArray(array: JobArrayRecord): void {
    this.set(this.arrays, array.id, array);
  }

  node(name: NodeName): Node | undefined {
    const drafted = this.nodes.get(name);
    return drafted === undefined ? this.base.nodes.get(name) : (drafted ?? undefined);
  }

  /** Every node, by name. */
  *nodesByName(): Iterable<Node> {
    const names = new Set([...this.base.nodes.keys(), ...this.nodes.keys()]);
    for (const name of [...names].sort()) {
      const node = this.node(name);
      if (node !== undefined) yield node;
    }
  }

  credential(id: string): Credential | undefined {
    const drafted = this.credentials.get(id);
    return drafted === undefined ? this.base.credentials.get(id) : (drafted ?? undefined);
  }

  /** The one that may be shown by a secret. */
  credentialOf(secretHash: string): Credential | undefined {
    for (const drafted of this.credentials.values())
      if (drafted !== null && secretsOf(drafted).includes(secretHash)) return drafted;
    const known = this.base.credentialOf(secretHash);
    const current = known === undefined ? undefined : this.credential(known.id);
    return secretsOf(current).includes(secretHash) ? current : undefined;
  }

  /** Of a node, join tokens with it; of the coordinator's own those by their kind. */
  credentialsOf(subject: string): readonly Credential[] {
    return this.everyCredential().filter((each) => each.subject === subject);
  }

  /** In no order. */
  everyCredential(): readonly Credential[] {
    const ids = new Set([...this.base.credentials.keys(), ...this.credentials.keys()]);
    return [...ids].flatMap((id) => this.credential(id) ?? []);
  }

  /** Takes so many places in the order of submission. @returns the first */
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
    this.noteNode(node);
    this.set(this.nodesToStore, node.name, true);
  }

  /** Its name may be another node's from now on. */
  removeNode(name: NodeName): void {
    this.set(this.nodes, name, null);
    this.set(this.nodesToStore, name, true);
  }

  /** What is not worth a commit of its own, such as when something was seen last: stored with the next change. */
  noteNode(node: Node): void {
    this.set(this.nodes, node.name, node);
  }

  putCredential(credential: Credential): void {
    this.set(this.credentials, credential.id, credential);
  }

  removeCredential({ id }: Pick<Credential, 'id'>): void {
    this.set(this.credentials, id, null);
  }

  putRequest(request: RequestRecord): void {
    this.set(this.requests, request.requestId, request);
  }

  /** A submit or requeue of this very batch; committed ones are in the store. */
  request(requestId: string): RequestRecord | undefined {
    return this.requests.get(requestId);
  }

  /** @param timeMs wall clock, for display */
  emit(event: NewEvent, timeMs: number): void {
    this.eventSeq += 1;
    const subjectSeq =
      (this.subjectSeqs.get(event.subject) ?? this.base.subjectSeqs.get(event.subject) ?? 0) + 1;
    this.set(this.subjectSeqs, event.subject, subjectSeq);
    this.events.push({
      ...event,
      ...nameOf(this.caller),
      seq: this.eventSeq,
      id: `${this.base.clusterId}-${this.eventSeq}`,
      subjectSeq,
      timeMs,
    });
  }

  /** How much a commit of it writes, in changes: what a turn of the loop is bounded by. */
  get size(): number {
    return this.jobs.size + this.events.length;
  }

  /** Nothing is to be stored. */
  isEmpty(): boolean {
    const { jobs, arrays, nodesToStore, credentials, requests, events } = this;
    return (
      jobs.size + arrays.size + nodesToStore.size + credentials.size + requests.size + events.length === 0
    );
  }

  toBatch(): Batch {
    const changed = [...this.jobs.values()];
    const arrays = [...this.arrays.values()];
    return {
      newArrays: arrays.filter(({ id }) => this.newArrays.has(id)),
      arrays: arrays.filter(({ id }) => !this.newArrays.has(id)),
      newJobs: changed.filter((job) => this.newJobIds.has(job.id)),
      jobs: changed.filter((job) => !this.newJobIds.has(job.id)),
      attempts: [...this.attempts.values()],
      nodes: [...this.nodes.values()].flatMap((node) =>
        node !== null && this.nodesToStore.has(node.name) ? [node] : [],
      ),
      removedNodes: removedOf(this.nodes),
      requests: [...this.requests.values()],
      credentials: [...this.credentials.values()].filter((credential) => credential !== null),
      removedCredentials: removedOf(this.credentials),
      events: this.events,
    };
  }

  /** Makes the committed draft the state. */
  apply(): Committed {
    const { base } = this;
    for (const job of this.jobs.values()) base.noteJob(job);
    for (const array of this.arrays.values()) {
      if (array.filled === array.size) base.arrays.delete(array.id);
      else base.arrays.set(array.id, array);
    }
    for (const [name, node] of this.nodes) {
      if (node === null) base.nodes.delete(name);
      else base.nodes.set(name, node);
    }
    for (const [id, credential] of this.credentials) base.setCredential(id, credential);
    for (const [subject, seq] of this.subjectSeqs) base.subjectSeqs.set(subject, seq);
    for (const job of this.jobs.values()) if (isTerminal(job.state.kind)) base.subjectSeqs.delete(job.id);
    forgetOutcomes(base);
    base.lastSubmitSeq = this.submitSeq;
    base.lastEventSeq = this.eventSeq;
    return {
      jobs: [...this.jobs.values()],
      attempts: [...this.attempts.values()],
      events: this.events,
      endedCredentials: removedOf(this.credentials),
      removedNodes: removedOf(this.nodes),
    };
  }
}
