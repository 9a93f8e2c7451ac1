/**
 * Checks G2, G3 and G7 of docs/guarantees.md on what each machine records about starts, freezes and ends. G2: one attempt
 * of a job executes at a time, and each task is started once at most. G3: a gang starts together or not at all, and a GPU
 * has one task at a time. G7: a task whose end is recorded has ended, and a task that is recorded as lost executes nothing.
 */
import { type JobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskEnd } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact, ProcessEnded, ProcessStarted } from '../history.ts';
import type { Guarantee, Verdict } from './verdict.ts';

/** Between the last instruction of a lost task and the first of the next attempt: the margin, by the fastest clock. */
const gapMs = 1_980;

interface AllocatedTask {
  readonly node: string;
  readonly gpuUuids: readonly string[];
}

export class ExecutionCheck {
  /** By task. */
  readonly running = new Map<TaskKey, ProcessStarted>();
  readonly exits = new Map<TaskKey, ProcessEnded>();
  /** Of those that run, the ones that execute nothing. */
  readonly frozen = new Set<TaskKey>();
  readonly started = new Set<TaskKey>();
  /** When those that are no longer executing did last. */
  private readonly executedMs = new Map<TaskKey, number>();
  /** Recorded as lost: their end was not seen. */
  private readonly lost = new Set<TaskKey>();
  /** Of these, those whose node may be running, as far as anybody knows. */
  private readonly fenced = new Set<TaskKey>();
  private readonly newestStarted = new Map<JobId, number>();
  private readonly prepared = new Set<TaskKey>();
  private readonly reportedPrepared = new Set<TaskKey>();
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

  isExecuting(key: TaskKey): boolean {
    return this.running.has(key) && !this.frozen.has(key);
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'prepared') this.prepared.add(taskKey(fact.task));
    else if (fact.kind === 'reportedPrepared') this.reportedPrepared.add(taskKey(fact.task));
    else if (fact.kind === 'started') this.onStarted(fact, nowMs);
    else if (fact.kind === 'frozen') this.onFrozen(fact.task, nowMs);
    else if (fact.kind === 'thawed') this.onThawed(fact.task);
    else if (fact.kind === 'ended') this.onEnded(fact, nowMs);
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  private onFrozen(task: TaskRef, nowMs: number): void {
    const key = taskKey(task);
    this.frozen.add(key);
    this.executedMs.set(key, nowMs);
  }

  private onThawed(task: TaskRef): void {
    const key = taskKey(task);
    this.frozen.delete(key);
    const must = (holds: boolean, what: string) =>
      this.verdict.require(holds, 'G2', () => `${key} was thawed ${what}`);
    must(!this.recordedEnds.has(key), 'after its end was recorded');
    for (const { task: other } of this.others(task)) must(false, `and executes beside ${taskKey(other)}`);
  }

  /** Of other attempts of its job, those that execute. */
  private others({ jobId, attempt }: TaskRef): readonly ProcessStarted[] {
    return [...this.running.values()].filter(
      ({ task }) => task.jobId === jobId && task.attempt !== attempt && this.isExecuting(taskKey(task)),
    );
  }

  private requireGap(task: TaskRef, nowMs: number): void {
    for (const key of this.fenced) {
      if (!key.startsWith(`${task.jobId}.`) || key.startsWith(`${attemptKey(task)}.`)) continue;
      const sinceMs = nowMs - (this.executedMs.get(key) ?? Number.NEGATIVE_INFINITY);
      const what = () =>
        `${taskKey(task)} was started ${sinceMs} ms after ${key}, which was lost, executed last`;
      this.verdict.require(sinceMs >= gapMs, 'G2', what);
    }
  }

  private onStarted(start: ProcessStarted, nowMs: number): void {
    const { task, machine, gpuUuids, nodeCount } = start;
    const key = taskKey(task);
    const must = (holds: boolean, guarantee: Guarantee, what: string) =>
      this.verdict.require(holds, guarantee, () => `${key} on ${machine} ${what}`);

    must(!this.started.has(key), 'G2', 'was started twice');
    must(!this.recordedEnds.has(key), 'G2', 'was started after its end was recorded');
    must(
      task.attempt >= (this.newestStarted.get(task.jobId) ?? 0),
      'G2',
      'was started after a newer attempt',
    );
    for (const other of this.others(task)) must(false, 'G2', `runs beside ${taskKey(other.task)}`);
    this.requireGap(task, nowMs);
    for (const other of this.running.values()) {
      const shared = gpuUuids.find((uuid) => other.gpuUuids.includes(uuid));
      must(shared === undefined, 'G3', `uses ${shared} together with ${taskKey(other.task)}`);
    }
    for (let nodeRank = 0; nodeRank < nodeCount; nodeRank += 1) {
      const member = taskKey({ ...task, nodeRank });
      must(this.prepared.has(member), 'G3', `was started before ${member} was prepared`);
      must(
        this.reportedPrepared.has(member),
        'G3',
        `was started before ${member} had reported that it is prepared`,
      );
    }
    must(this.released.has(attemptKey(task)), 'G3', 'was started before its release was committed');
    const allocation = this.allocated.get(key);
    must(allocation?.node === machine, 'G3', `was allocated to ${allocation?.node}`);
    must(
      allocation?.gpuUuids.join() === gpuUuids.join(),
      'G3',
      `was allocated ${allocation?.gpuUuids.join()}`,
    );
    must(start.portWasHeld !== false, 'G3', 'received a port that was not held for it');

    this.started.add(key);
    this.newestStarted.set(task.jobId, Math.max(task.attempt, this.newestStarted.get(task.jobId) ?? 0));
    this.running.set(key, start);
  }

  private onEnded(end: ProcessEnded, nowMs: number): void {
    const key = taskKey(end.task);
    if (this.isExecuting(key)) this.executedMs.set(key, nowMs);
    this.running.delete(key);
    this.frozen.delete(key);
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
      case 'attempt.released':
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
    if (exit.startError?.kind === 'node_lost') this.lost.add(key);
    if (exit.startError?.message.endsWith('its lease has expired') === true) this.fenced.add(key);
    this.free(task, 'its end was recorded');
    const actual = this.exits.get(key);
    const isKnown = exit.exitCode !== null || exit.signal !== null;
    const isTrue = actual?.exitCode === exit.exitCode && actual.signal === exit.signal;
    this.verdict.require(!isKnown || isTrue, 'G7', () => {
      return `${key} is recorded with exit ${exit.exitCode ?? exit.signal} and had ${JSON.stringify(actual)}`;
    });
  }

  private free(task: TaskRef, why: string): void {
    const key = taskKey(task);
    const isOver = this.lost.has(key) ? !this.isExecuting(key) : !this.running.has(key);
    this.verdict.require(isOver, this.lost.has(key) ? 'G2' : 'G7', () => `${key} runs, and ${why}`);
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
