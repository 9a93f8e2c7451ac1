/**
 * What runs where, from the machines' own account of starts and ends: G2 (one attempt at a time, every task at most
 * once), G3 (together or not at all, GPUs to one task at a time) and G7 (what is recorded as ended has ended).
 */
import { type JobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskEnd } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact, ProcessEnded, ProcessStarted } from '../history.ts';
import type { Verdict } from './verdict.ts';

interface AllocatedTask {
  readonly node: string;
  readonly gpuUuids: readonly string[];
}

export class ExecutionCheck {
  /** By task. */
  readonly running = new Map<TaskKey, ProcessStarted>();
  readonly exits = new Map<TaskKey, ProcessEnded>();
  private readonly started = new Set<TaskKey>();
  private readonly newestStarted = new Map<JobId, number>();
  private readonly prepared = new Set<TaskKey>();
  private readonly claimed = new Set<TaskKey>();
  /** `<job>.<attempt>` of attempts whose release was committed. */
  private readonly released = new Set<string>();
  private readonly recordedEnds = new Set<TaskKey>();
  private readonly allocated = new Map<TaskKey, AllocatedTask>();
  private readonly newestAllocated = new Map<JobId, number>();
  /** Which task each GPU is allocated to. */
  private readonly holders = new Map<string, TaskKey>();
  private readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  see(fact: Fact): void {
    if (fact.kind === 'prepared') this.prepared.add(taskKey(fact.task));
    else if (fact.kind === 'claimed') this.claimed.add(taskKey(fact.task));
    else if (fact.kind === 'started') this.onStarted(fact);
    else if (fact.kind === 'ended') this.onEnded(fact);
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  private onStarted(start: ProcessStarted): void {
    const { task, machine, gpuUuids, nodeCount } = start;
    const key = taskKey(task);
    const must = (holds: boolean, guarantee: string, what: string) =>
      this.verdict.require(holds, guarantee, () => `${key} on ${machine} ${what}`);

    must(!this.started.has(key), 'G2', 'was started twice');
    must(!this.recordedEnds.has(key), 'G2', 'was started after its end was recorded');
    must(
      task.attempt >= (this.newestStarted.get(task.jobId) ?? 0),
      'G2',
      'was started after a newer attempt',
    );
    for (const other of this.running.values()) {
      const isSameJob = other.task.jobId === task.jobId;
      must(!isSameJob || other.task.attempt === task.attempt, 'G2', `runs beside ${taskKey(other.task)}`);
      const shared = gpuUuids.find((uuid) => other.gpuUuids.includes(uuid));
      must(shared === undefined, 'G3', `uses ${shared} together with ${taskKey(other.task)}`);
    }
    for (let nodeRank = 0; nodeRank < nodeCount; nodeRank += 1) {
      const member = taskKey({ ...task, nodeRank });
      must(this.prepared.has(member), 'G3', `was started before ${member} was prepared`);
      must(this.claimed.has(member), 'G3', `was started before ${member} had claimed`);
    }
    must(this.released.has(attemptKey(task)), 'G3', 'was started before its release was committed');
    const allocation = this.allocated.get(key);
    must(allocation?.node === machine, 'G3', `was allocated to ${allocation?.node}`);
    must(
      allocation?.gpuUuids.join() === gpuUuids.join(),
      'G3',
      `was allocated ${allocation?.gpuUuids.join()}`,
    );
    must(start.portWasHeld !== false, 'G3', 'was told a port that nobody had held for it');

    this.started.add(key);
    this.newestStarted.set(task.jobId, Math.max(task.attempt, this.newestStarted.get(task.jobId) ?? 0));
    this.running.set(key, start);
  }

  private onEnded(end: ProcessEnded): void {
    const key = taskKey(end.task);
    this.running.delete(key);
    this.exits.set(key, end);
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    const jobId = subject as JobId;
    const attempt = Number(data['attempt']);
    const ref = (nodeRank: number): TaskRef => ({ jobId, attempt, nodeRank });
    switch (kind) {
      case 'attempt.allocated':
        for (const [nodeRank, task] of (data['tasks'] as AllocatedTask[]).entries())
          this.allocate(ref(nodeRank), task);
        break;
      case 'attempt.claimed':
        this.released.add(attemptKey(ref(0)));
        break;
      case 'task.ended':
        this.onRecordedEnd(ref(Number(data['nodeRank'])), data['exit'] as TaskEnd);
        break;
      case 'attempt.ended':
        for (const nodeRank of (data['tasks'] as AllocatedTask[]).keys())
          this.free(ref(nodeRank), 'its attempt ended');
        break;
      case 'job.succeeded':
        this.requireSuccess(jobId);
        break;
      default:
    }
  }

  private allocate(task: TaskRef, allocation: AllocatedTask): void {
    const key = taskKey(task);
    this.allocated.set(key, allocation);
    this.newestAllocated.set(task.jobId, task.attempt);
    for (const uuid of allocation.gpuUuids) {
      const holder = this.holders.get(uuid);
      this.verdict.require(
        holder === undefined,
        'G3',
        () => `${uuid} was given to ${key} and is held by ${holder}`,
      );
      this.holders.set(uuid, key);
    }
  }

  private onRecordedEnd(task: TaskRef, exit: TaskEnd): void {
    const key = taskKey(task);
    this.free(task, 'its end was recorded');
    const actual = this.exits.get(key);
    const isTold = exit.exitCode !== null || exit.signal !== null;
    const isTrue = actual?.exitCode === exit.exitCode && actual.signal === exit.signal;
    this.verdict.require(!isTold || isTrue, 'G7', () => {
      return `${key} is recorded with exit ${exit.exitCode ?? exit.signal} and had ${JSON.stringify(actual)}`;
    });
  }

  private free(task: TaskRef, why: string): void {
    const key = taskKey(task);
    this.verdict.require(!this.running.has(key), 'G7', () => `${key} runs, and ${why}`);
    this.recordedEnds.add(key);
    for (const uuid of this.allocated.get(key)?.gpuUuids ?? []) {
      if (this.holders.get(uuid) === key) this.holders.delete(uuid);
    }
  }

  private requireSuccess(jobId: JobId): void {
    const attempt = this.newestAllocated.get(jobId);
    for (const key of this.allocated.keys()) {
      if (!key.startsWith(`${jobId}.${attempt}.`)) continue;
      const exit = this.exits.get(key);
      this.verdict.require(
        exit?.exitCode === 0,
        'G7',
        () => `${jobId} succeeded, and ${key} ended ${JSON.stringify(exit)}`,
      );
    }
    this.verdict.require(attempt !== undefined, 'G7', () => `${jobId} succeeded without an attempt`);
  }
}

function attemptKey({ jobId, attempt }: TaskRef): string {
  return `${jobId}.${attempt}`;
}
