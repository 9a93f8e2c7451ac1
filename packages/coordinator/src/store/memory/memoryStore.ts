/**
 * A store in memory, for unit tests and simulation. What a disk would hold is a `Memory`; it outlives the stores opened on
 * it, so that a simulated coordinator can be killed and started again. The contract suite holds this one to what the
 * real stores do.
 */

import type { AlertEpisode, AlertSilence } from '@muster/common/alerts';
import { clusterSubject } from '@muster/common/eventKinds';
import type { ArrayId, JobId } from '@muster/common/ids';
import type { Project, User } from '@muster/common/people';
import { isTerminal, type TerminalJobState } from '@muster/common/states';
import { type Attempt, currentAttempt, type Job, type Node, type StoredEvent } from '../../model.ts';
import { ownName } from '../../spec/ownSpec.ts';
import type { StoredAlert } from '../alerts.ts';
import { indexAt } from '../arrayIndexes.ts';
import { dependencySnapshot } from '../dependencyMemory.ts';
import type { RetentionStore } from '../retention.ts';
import { type SecretStore, type StoredSecret, secretId } from '../secrets.ts';
import {
  type Batch,
  type Credential,
  type JobArrayRecord,
  type JobFilters,
  type JobPage,
  type JobQuery,
  type JobRecord,
  type ListedJobId,
  type NameStore,
  type RequestRecord,
  type Snapshot,
  type Store,
  type StoredOutcome,
  StoreError,
  type VisibleJobs,
} from '../store.ts';
import { memoryAlertsOf, writeMemoryAlerts } from './memoryAlerts.ts';
import { memoryPipelinesOf, PipelineMemory, writeMemoryPipelines } from './memoryPipelines.ts';
import { memoryRetention } from './memoryRetention.ts';
import { memorySweepsOf, SweepMemory, writeMemorySweeps } from './memorySweeps.ts';

export class Memory {
  readonly clusterId: string;
  readonly jobs = new Map<JobId, Job>();
  readonly arrays = new Map<ArrayId, JobArrayRecord>();
  readonly jobsBySubmitSeq = new Map<number, JobId>();
  /** Per job, by attempt number. */
  readonly attempts = new Map<JobId, ReadonlyMap<number, Attempt>>();
  readonly nodes = new Map<string, Node>();
  readonly removedNodes = new Map<string, true>();
  readonly requests = new Map<string, RequestRecord>();
  readonly credentials = new Map<string, Credential>();
  readonly users = new Map<string, User>();
  readonly projects = new Map<string, Project>();
  readonly alerts = new Map<string, StoredAlert>();
  /** By `episodeKey`. */
  readonly alertEpisodes = new Map<string, AlertEpisode>();
  readonly alertSilences = new Map<string, AlertSilence>();
  readonly budgets = new Map<string, Batch['budgets'][number]>();
  readonly sweeps = new SweepMemory();
  readonly pipelines = new PipelineMemory();
  /** By `secretId`. */
  readonly secrets = new Map<string, StoredSecret>();
  /** In order of their sequence numbers, which is the order of their insertion. */
  readonly events = new Map<number, StoredEvent>();
  readonly subjectSeqs = new Map<string, number>();
  readonly meta = new Map<string, string>();
  /** By id, when. */
  readonly removedJobs = new Map<JobId, number>();
  removedEventSeq = 0;

  constructor(clusterId: string) {
    this.clusterId = clusterId;
  }
}

/** Whether a job may be stored in this form: one that has ended never changes, and attempt numbers only grow (G6 of docs/guarantees.md). */
export function mayFollow(known: Job, job: Job): boolean {
  return !isTerminal(known.state.kind) && known.lastAttempt <= job.lastAttempt;
}

/** Whether an attempt has ended, and never changes again (G6). */
export function isOver(attempt: Attempt | undefined): boolean {
  return attempt?.state === 'ended';
}

/** A changed job as it is stored: its spec, its submission number and the time of its submission stay as they were. */
export function storedJob({ spec, submitSeq, submittedAtMs }: Job, job: Job): Job {
  return { ...job, spec, submitSeq, submittedAtMs };
}

export class MemoryStore implements Store {
  private readonly memory: Memory;

  readonly names: NameStore = {
    jobIds: async (prefix, limit) => {
      const ids = [...this.memory.jobs.keys()].filter((id) => id.startsWith(prefix));
      return sortedBy(ids, (id) => id).slice(0, limit);
    },
    arrayIds: async (prefix, limit) => {
      const ids = this.jobsInOrder().flatMap(({ array }) => (array?.id.startsWith(prefix) ? [array.id] : []));
      return sortedBy([...new Set(ids)], (id) => id).slice(0, limit);
    },
    names: async (prefix, limit) => {
      const all = this.jobsInOrder().map(ownName);
      const wanted = new Set(all.filter((name) => name.startsWith(prefix)));
      return sortedBy([...wanted], (name) => name).slice(0, limit);
    },
    newestArray: async (name) => {
      const newest = this.jobsInOrder().findLast((job) => ownName(job) === name && job.array !== null);
      return newest?.array?.id ?? null;
    },
    member: async (arrayId, index) => {
      const isIt = ({ array }: Job) => array?.id === arrayId && array.index === index;
      return this.jobsInOrder().findLast(isIt)?.id ?? null;
    },
  };
  readonly retention: RetentionStore;
  readonly secrets: SecretStore = {
    read: async (project, name) => this.memory.secrets.get(secretId({ project, name })) ?? null,
    list: async (project) =>
      sortedBy([...this.memory.secrets.values()], secretId).filter(
        (secret) => project === null || secret.project === project,
      ),
  };

  constructor(memory: Memory) {
    this.memory = memory;
    this.retention = memoryRetention(memory);
  }

  async load(): Promise<Snapshot> {
    const { clusterId, nodes, removedNodes, credentials, jobsBySubmitSeq, events, subjectSeqs } = this.memory;
    const jobs = this.jobsInOrder();
    const activeJobs = jobs.filter((job) => !isTerminal(job.state.kind));
    const speaking = new Set<string>([
      ...activeJobs.map((job) => job.id),
      ...nodes.keys(),
      ...removedNodes.keys(),
      clusterSubject,
    ]);
    const unfilledArrays = this.unfilledArrays();
    const reserved = unfilledArrays.map(({ firstSubmitSeq, size }) => firstSubmitSeq + size - 1);
    return {
      clusterId,
      activeJobs,
      unfilledArrays,
      ...(await dependencySnapshot(this, activeJobs)),
      nodes: sortedBy([...nodes.values()], (node) => node.name),
      credentials: sortedBy([...credentials.values()], (credential) => credential.id),
      users: sortedBy([...this.memory.users.values()], (user) => user.name),
      projects: sortedBy([...this.memory.projects.values()], (project) => project.name),
      alerts: memoryAlertsOf(this.memory),
      budgets: sortedBy([...this.memory.budgets.values()], (budget) => budget.id),
      ...memorySweepsOf(this.memory),
      pipelines: memoryPipelinesOf(this.memory),
      lastSubmitSeq: [...reserved, ...jobsBySubmitSeq.keys()].reduce((last, seq) => Math.max(last, seq), 0),
      lastEventSeq: [...events.keys()].at(-1) ?? 0,
      subjectSeqs: new Map([...subjectSeqs].filter(([subject]) => speaking.has(subject))),
    };
  }

  async commit(batch: Batch): Promise<void> {
    const writer = new Writer();
    try {
      this.write(batch, writer);
    } catch (error) {
      writer.undo();
      throw error;
    }
  }

  private write(batch: Batch, writer: Writer): void {
    const { jobs, jobsBySubmitSeq, attempts, nodes, requests, credentials, events, subjectSeqs } =
      this.memory;
    const { arrays } = this.memory;
    for (const array of batch.newArrays) writer.insert(arrays, array.id, array);
    for (const array of batch.arrays) {
      const known = arrays.get(array.id);
      if (known === undefined || known.filled === known.size || known.filled > array.filled)
        throw conflict(array.id);
      writer.put(arrays, array.id, { ...known, filled: array.filled });
    }
    for (const job of batch.newJobs) {
      writer.insert(jobs, job.id, job);
      writer.insert(jobsBySubmitSeq, job.submitSeq, job.id);
    }
    for (const job of batch.jobs) {
      const known = jobs.get(job.id);
      if (known === undefined || !mayFollow(known, job)) throw conflict(job.id);
      writer.put(jobs, job.id, storedJob(known, job));
    }
    for (const { jobId, attempt } of batch.attempts) {
      const known = attempts.get(jobId);
      if (!jobs.has(jobId) || isOver(known?.get(attempt.number))) throw conflict(jobId);
      writer.put(attempts, jobId, new Map([...(known ?? []), [attempt.number, attempt]]));
    }
    for (const node of batch.nodes) writer.put(nodes, node.name, node);
    for (const name of batch.removedNodes) {
      writer.remove(nodes, name);
      writer.put(this.memory.removedNodes, name, true);
    }
    for (const request of batch.requests) writer.insert(requests, request.requestId, request);
    for (const id of batch.removedCredentials) writer.remove(credentials, id);
    for (const credential of batch.credentials) {
      const { id, secretHash, nextHash } = credential;
      const isShared = [...credentials.values()].some(
        (each) =>
          each.id !== id &&
          (each.secretHash === secretHash || (nextHash !== null && each.nextHash === nextHash)),
      );
      if (isShared) throw conflict(id);
      writer.put(credentials, id, credential);
    }
    for (const name of batch.removedUsers) writer.remove(this.memory.users, name);
    for (const user of batch.users) writer.put(this.memory.users, user.name, user);
    for (const project of batch.projects) writer.put(this.memory.projects, project.name, project);
    for (const id of batch.removedBudgets) writer.remove(this.memory.budgets, id);
    for (const budget of batch.budgets) writer.put(this.memory.budgets, budget.id, budget);
    for (const id of batch.removedSecrets) writer.remove(this.memory.secrets, id);
    for (const secret of batch.secrets) writer.put(this.memory.secrets, secretId(secret), secret);
    writeMemoryAlerts(this.memory, batch, writer);
    writeMemorySweeps(this.memory, batch, writer);
    writeMemoryPipelines(this.memory, batch, writer);
    for (const event of batch.events) {
      if (event.subjectSeq <= (subjectSeqs.get(event.subject) ?? 0)) throw conflict(event.id);
      writer.insert(events, event.seq, event);
      writer.put(subjectSeqs, event.subject, event.subjectSeq);
    }
  }

  async readJob(id: JobId): Promise<JobRecord | null> {
    const job = this.memory.jobs.get(id);
    if (job === undefined) return null;
    const attempts = sortedBy(
      [...(this.memory.attempts.get(id)?.values() ?? [])],
      (attempt) => attempt.number,
    );
    return { job: this.withAttempt(job), attempts };
  }

  async listJobs(query: JobQuery): Promise<JobPage> {
    const matching = this.matching(query);
    const records: JobRecord[] = [];
    let size = 0;
    for (const job of matching.slice(0, query.limit)) {
      const newest = this.memory.attempts.get(job.id)?.get(job.lastAttempt);
      const record = { job, attempts: newest === undefined ? [] : [newest] };
      size += JSON.stringify(record).length;
      if (records.length > 0 && size > query.sizeMax) break;
      records.push(record);
    }
    return { records, more: records.length < matching.length };
  }

  async listJobIds(query: Omit<JobQuery, 'sizeMax'>): Promise<readonly ListedJobId[]> {
    return this.matching(query)
      .slice(0, query.limit)
      .map(({ id, submitSeq }) => ({ id, submitSeq }));
  }

  private matching(query: Omit<JobQuery, 'sizeMax'>): readonly Job[] {
    const { states, arrayId, name, beforeSubmitSeq } = query;
    const { project, user, label, sinceMs, visible } = query.also ?? {};
    return this.jobsInOrder()
      .reverse()
      .filter((job) => states.length === 0 || states.includes(job.state.kind))
      .filter((job) => arrayId === null || job.array?.id === arrayId)
      .filter((job) => name === null || ownName(job) === name)
      .filter(({ spec }) => project === undefined || spec.project === project)
      .filter((job) => user === undefined || job.user === user)
      .filter((job) => visible === undefined || isVisible(job, visible))
      .filter(({ submittedAtMs }) => sinceMs === undefined || submittedAtMs >= sinceMs)
      .filter(({ spec: { labels } }) => label === undefined || hasLabel(labels, label))
      .filter((job) => beforeSubmitSeq === null || job.submitSeq < beforeSubmitSeq);
  }

  async readOutcomes(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, StoredOutcome>> {
    const { jobs, removedJobs } = this.memory;
    const found = new Map<JobId, StoredOutcome>(ids.flatMap((id) => outcomeOf(jobs.get(id))));
    for (const id of ids) if (removedJobs.has(id)) found.set(id, 'removed');
    return found;
  }

  async readSuccessors(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, JobId>> {
    const wanted = new Set(ids);
    const found = this.jobsInOrder().flatMap(({ id, requeuedFrom }) =>
      requeuedFrom !== null && wanted.has(requeuedFrom) ? [[requeuedFrom, id] as const] : [],
    );
    return new Map(found);
  }

  async readArrayFailures(arrayId: ArrayId): Promise<readonly JobId[]> {
    const jobs = this.jobsInOrder();
    const again = new Set(jobs.map(({ requeuedFrom }) => requeuedFrom));
    const isFailure = ({ id, array, state }: Job) =>
      array?.id === arrayId && (state.kind === 'failed' || state.kind === 'cancelled') && !again.has(id);
    return jobs.filter(isFailure).map(({ id }) => id);
  }

  async readRequest(requestId: string): Promise<RequestRecord | null> {
    return this.memory.requests.get(requestId) ?? null;
  }

  async readEvents(sinceSeq: number, limit: number, subject: string | null): Promise<readonly StoredEvent[]> {
    return [...this.memory.events.values()]
      .filter((event) => event.seq > sinceSeq && (subject === null || event.subject === subject))
      .slice(0, limit);
  }

  async readMeta(name: string): Promise<string | null> {
    return this.memory.meta.get(name) ?? null;
  }

  async writeMeta(name: string, value: string): Promise<void> {
    this.memory.meta.set(name, value);
  }

  async close(): Promise<void> {}

  private unfilledArrays(): readonly JobArrayRecord[] {
    const { arrays, jobs } = this.memory;
    const unfilled = [...arrays.values()].filter(({ filled, size }) => filled < size);
    return sortedBy(unfilled, ({ id }) => id).map((array) => {
      const from = indexAt(array, array.filled);
      const indexes = [...jobs.values()].flatMap((job) =>
        job.array?.id === array.id ? job.array.index : [],
      );
      return { ...array, early: new Set(indexes.filter((index) => index >= from)) };
    });
  }

  private jobsInOrder(): Job[] {
    return sortedBy([...this.memory.jobs.values()], (job) => job.submitSeq).map((job) =>
      this.withAttempt(job),
    );
  }

  /** An attempt is stored once, beside its job: a batch that forgets it is found out here as it would be on disk. */
  private withAttempt(job: Job): Job {
    if (currentAttempt(job) === null) return job;
    const attempt = this.memory.attempts.get(job.id)?.get(job.lastAttempt);
    if (attempt === undefined)
      throw new StoreError('damaged', `${job.id} has no attempt ${job.lastAttempt} in the store`);
    return { ...job, state: { ...job.state, attempt } as Job['state'] };
  }
}

function isVisible(
  { user, spec: { project } }: Job,
  { user: viewer, hiddenProjects, onlyProjects }: VisibleJobs,
): boolean {
  if (onlyProjects !== null && !onlyProjects.includes(project)) return false;
  return user === viewer || !hiddenProjects.includes(project);
}

function hasLabel(
  labels: Readonly<Record<string, string>>,
  { name, value }: NonNullable<JobFilters['label']>,
): boolean {
  return Object.hasOwn(labels, name) && (value === null || labels[name] === value);
}

/** Changes maps, and back again. */
class Writer {
  private readonly undoes: (() => void)[] = [];

  put<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    this.undoes.push(() => (before === undefined ? map.delete(key) : map.set(key, before)));
    map.set(key, value);
  }

  insert<K, V>(map: Map<K, V>, key: K, value: V): void {
    if (map.has(key)) throw conflict(String(key));
    this.put(map, key, value);
  }

  remove<K, V>(map: Map<K, V>, key: K): void {
    const before = map.get(key);
    if (before === undefined) return;
    this.undoes.push(() => map.set(key, before));
    map.delete(key);
  }

  undo(): void {
    for (const each of this.undoes.reverse()) each();
  }
}

function conflict(what: string): StoreError {
  return new StoreError('conflict', `the store refused to change ${what}`);
}

function outcomeOf(job: Job | undefined): readonly (readonly [JobId, TerminalJobState])[] {
  return job !== undefined && isTerminal(job.state.kind) ? [[job.id, job.state.kind]] : [];
}

function sortedBy<T>(values: T[], key: (value: T) => string | number): T[] {
  return values.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}
