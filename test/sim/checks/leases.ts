/**
 * Checks leases and fences: what the coordinator has granted against what the machines have done. G2 of docs/guarantees.md:
 * no task executes for longer than its lease and the fence time. G4: no task stays frozen on a node whose questions are
 * answered, and none is ended because its lease has expired, unless its job asks for that. `hold`: a job with
 * `node_loss: hold` is never fenced, and is rescheduled only once its tasks are gone. `suspicion`: nothing is rescheduled
 * while most nodes are silent.
 */
import { type JobId, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { StoredEvent } from '@muster/coordinator/model';
import { leaseSettings } from '../coordinatorProcess.ts';
import type { Grants } from '../grants.ts';
import type { Fact, ProcessEnded } from '../history.ts';
import type { ExecutionCheck } from './executions.ts';
import type { Verdict } from './verdict.ts';

/** The clock that deadlines are read from goes in steps, and so do timers. */
const tickMs = 20;
/** A node that hears its coordinator steadily has thawed its tasks by then: two heartbeats, and the guard's own time. */
const thawWithinMs = 5_000;

export interface LeaseCheckParts {
  readonly verdict: Verdict;
  readonly executions: ExecutionCheck;
  readonly grants: Grants;
  readonly fileOf: (jobName: string) => JobSpecFile | undefined;
  /** Whether this node's guard has been in order for long enough, and its agent runs. */
  readonly isWell: (machine: string) => boolean;
}

interface Silence {
  readonly sinceMs: number;
  isDead: boolean;
}

export class LeaseCheck {
  private readonly parts: LeaseCheckParts;
  private readonly names = new Map<JobId, string>();
  /** Attempts, `<job>.<number>`, that were ordered to stop or are over. */
  private readonly stopping = new Set<string>();
  private readonly frozenSinceMs = new Map<TaskKey, { readonly machine: string; readonly sinceMs: number }>();
  private readonly fileByJob = new Map<JobId, JobSpecFile | undefined>();
  /** By the log, and only of this run of the coordinator. */
  private readonly silent = new Map<string, Silence>();
  /** Nodes that have spoken to this run of the coordinator. */
  private readonly heard = new Set<string>();
  /** By the log: where each task is whose end is not recorded. */
  private readonly held = new Map<TaskKey, string>();
  /** The same as it was before the last commit, which records the ends of what a node is fenced for. */
  private heldBefore: ReadonlyMap<TaskKey, string> = new Map();

  constructor(parts: LeaseCheckParts) {
    this.parts = parts;
  }

  see(fact: Fact, nowMs: number): void {
    switch (fact.kind) {
      case 'started':
        this.onStarted(fact.task, nowMs);
        break;
      case 'frozen':
        this.onFrozen(fact.task, fact.machine, nowMs);
        break;
      case 'thawed':
        this.frozenSinceMs.delete(taskKey(fact.task));
        break;
      case 'ended':
        this.onEnded(fact, nowMs);
        break;
      case 'process':
        if (fact.what === 'started' && fact.name.startsWith('coordinator ')) this.onCoordinatorStarted();
        break;
      case 'committed':
        this.heldBefore = new Map(this.held);
        for (const event of fact.events) this.onEvent(event, nowMs);
        break;
      default:
    }
  }

  private onCoordinatorStarted(): void {
    this.silent.clear();
    this.heard.clear();
  }

  /** Must be invoked now and then. */
  look(nowMs: number): void {
    const { executions, grants, verdict, isWell } = this.parts;
    for (const key of executions.running.keys()) this.requireLeave(key, nowMs, leaseSettings.fenceMs);
    for (const [key, { machine, sinceMs }] of this.frozenSinceMs) {
      const steadyMs = Math.min(nowMs - sinceMs, grants.steadyForMs(machine));
      const isForgotten = steadyMs > thawWithinMs && isWell(machine);
      verdict.require(
        !isForgotten,
        'G4',
        () => `${key} stays frozen on ${machine}, which hears its coordinator`,
      );
    }
  }

  private fileOf(jobId: JobId): JobSpecFile | undefined {
    const known = this.fileByJob.get(jobId) ?? this.parts.fileOf(this.names.get(jobId) ?? '');
    this.fileByJob.set(jobId, known);
    return known;
  }

  private requireLeave(key: TaskKey, nowMs: number, graceMs: number): void {
    if (!this.parts.executions.isExecuting(key)) return;
    const untilMs = this.parts.grants.mayRunUntilMs(key);
    const overdueMs = Math.round(nowMs - untilMs);
    const what = () => `${key} executes ${overdueMs} ms after the end of its lease`;
    this.parts.verdict.require(nowMs <= untilMs + graceMs + tickMs, 'G2', what);
  }

  private onStarted(task: TaskRef, nowMs: number): void {
    this.requireLeave(taskKey(task), nowMs, 0);
  }

  private onFrozen(task: TaskRef, machine: string, nowMs: number): void {
    const { verdict, grants } = this.parts;
    const key = taskKey(task);
    this.frozenSinceMs.set(key, { machine, sinceMs: nowMs });
    const isHeld = this.fileOf(task.jobId)?.node_loss === 'hold';
    verdict.require(!isHeld, 'hold', () => `${key} is to be held, and was frozen`);
    const untilMs = grants.mayRunUntilMs(key);
    verdict.require(
      nowMs <= untilMs + leaseSettings.fenceMs + tickMs,
      'G2',
      () => `${key} was frozen ${Math.round(nowMs - untilMs)} ms after the end of its lease`,
    );
  }

  private onEnded({ task, by }: ProcessEnded, nowMs: number): void {
    const { jobId, attempt } = task;
    const key = taskKey(task);
    this.frozenSinceMs.delete(key);
    if (by === 'itself') {
      const untilMs = this.parts.grants.mayRunUntilMs(key) + leaseSettings.fenceMs + tickMs;
      const what = () =>
        `${key} ended by itself ${Math.round(nowMs - untilMs)} ms after nothing of it was to run`;
      this.parts.verdict.require(nowMs <= untilMs, 'G2', what);
    }
    if (by === 'itself' || by === 'reboot') return;
    const isWanted = this.stopping.has(`${jobId}.${attempt}`);
    const isKilled = this.fileOf(jobId)?.on_lease_expiry === 'kill';
    this.parts.verdict.require(
      isWanted || isKilled,
      'G4',
      () => `${key} was ended, and no order asked for it`,
    );
  }

  private onEvent(event: StoredEvent, nowMs: number): void {
    const { kind, subject, data } = event;
    const attempt = `${subject}.${Number(data['attempt'])}`;
    if (kind === 'job.submitted') this.names.set(subject as JobId, String(data['name']));
    else if (kind === 'job.stopping' || kind === 'attempt.ended') this.stopping.add(attempt);
    if (kind === 'attempt.ended') this.release(attempt);
    else if (kind === 'task.ended') this.onTaskEnded(`${attempt}.${Number(data['nodeRank'])}` as TaskKey);
    else if (kind === 'attempt.allocated') {
      this.requireProofOfHeld(subject as JobId);
      for (const [rank, { node }] of (data['tasks'] as { node: string }[]).entries())
        this.held.set(`${attempt}.${rank}` as TaskKey, node);
    } else if (kind === 'node.online') this.onHeard(subject);
    else if (kind === 'node.silent') this.silent.set(subject, { sinceMs: nowMs, isDead: false });
    else if (kind === 'node.confirmed_dead') {
      const silence = this.silent.get(subject);
      if (silence !== undefined) silence.isDead = true;
    } else if (kind === 'node.fenced') this.requireTrust(subject);
  }

  private onHeard(node: string): void {
    this.silent.delete(node);
    this.heard.add(node);
  }

  private onTaskEnded(key: TaskKey): void {
    this.frozenSinceMs.delete(key);
    this.held.delete(key);
  }

  private release(attempt: string): void {
    for (const key of this.held.keys()) if (key.startsWith(`${attempt}.`)) this.held.delete(key);
  }

  private requireProofOfHeld(jobId: JobId): void {
    if (this.fileOf(jobId)?.node_loss !== 'hold') return;
    for (const { task } of this.parts.executions.running.values()) {
      if (task.jobId !== jobId) continue;
      const what = () => `${jobId} is to be held, and got another attempt while ${taskKey(task)} is there`;
      this.parts.verdict.require(false, 'hold', what);
    }
  }

  /**
   * Nodes that became silent together with this one may not be most of those whose silence means something: these have
   * connected to this run of the coordinator, or hold tasks. Any other may have been given away long ago.
   */
  private requireTrust(node: string): void {
    const silence = this.silent.get(node);
    if (silence === undefined) return;
    const expected = [...new Set([node, ...this.heard, ...this.heldBefore.values()])];
    const together = expected.filter((name) => {
      const { sinceMs = Number.NEGATIVE_INFINITY, isDead = false } = this.silent.get(name) ?? {};
      return !isDead && Math.abs(sinceMs - silence.sinceMs) <= leaseSettings.leaseMs / 2;
    });
    const answering = expected.filter((name) => !this.silent.has(name)).length;
    const isMost = together.length >= 3 && together.length > answering;
    const what = () =>
      `tasks of ${node} were given up while ${together.length} nodes are silent and ${answering} answer`;
    this.parts.verdict.require(!isMost, 'suspicion', what);
  }
}
