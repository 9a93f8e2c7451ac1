/**
 * One connected agent, and the last order that it was sent for each task.
 *
 * `sync` compares the desired order with the last one sent, and sends it if they differ. Other code need not care about
 * orders that are sent twice, or lost with a broken stream: a new connection starts with no orders sent.
 */

import type { Checkpoint, CorruptCheckpoint, KeptCheckpoints } from '@muster/common/checkpoints';
import type { Condition } from '@muster/common/conditions';
import type { Assignment } from '@muster/common/gen/muster/v1/Assignment';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { Start } from '@muster/common/gen/muster/v1/Start';
import type { Stop } from '@muster/common/gen/muster/v1/Stop';
import type { TaskVerdict } from '@muster/common/gen/muster/v1/TaskVerdict';
import {
  type JobId,
  type NodeName,
  parseTaskKey,
  type TaskKey,
  type TaskRef,
  taskKey,
} from '@muster/common/ids';
import type { TraceSampler } from '@muster/common/traceContext';
import type { TaskReport } from '@muster/common/views';
import { lookOrderToWire, pathCheckToWire, resumeToWire, taskRefToWire } from '@muster/common/wire/codec';
import type { AgentIdentity } from '../caller.ts';
import type { LeaseGrants } from '../leases/leases.ts';
import { lookOrderOf } from '../lifecycle/look.ts';
import { type Attempt, currentAttempt, isReleased, type Job, type Task } from '../model.ts';
import { specText } from '../spec/ownSpec.ts';
import { attemptSpec } from '../spec/phaseSpec.ts';
import { heldTask } from '../state/heldTasks.ts';
import { type Desired, desiredOf, isReceived, leaseToWire, orderKey } from './desired.ts';
import { traceparentOfAttempt } from './traceparent.ts';

/** The time between two requests to renew a credential. An agent that cannot renew, or has a full disk, is not pressed. */
const renewalAskedEveryMs = 60_000;

export interface AgentStream {
  write(message: CoordinatorMessage): void;
  end(): void;
}

export interface WelcomeSettings {
  readonly heartbeatIntervalMs: number;
  readonly leaseMs: number;
  readonly term: number;
  readonly termProof: string;
  readonly clusterId: string;
}

export class AgentSession {
  /** The identity that the connection was authenticated with. */
  readonly caller: AgentIdentity;
  readonly node: NodeName;
  readonly instanceId: string;
  readonly bootId: string;
  /** The agent uses a newer connection. */
  superseded = false;
  /** Something that the agent sent was not stored, because the disk was full. */
  hasMissed = false;
  /** The condition of the node for claims of its agent without proof. It is null if there are none. */
  readonly doubt: Condition | null;
  /** The monotonic time from which the next request to renew may be sent. */
  private askAgainMs = 0;
  private readonly stream: AgentStream;
  private readonly leases: LeaseGrants;
  private readonly isSampled: TraceSampler | null;
  private readonly keptOf: (job: Job) => KeptCheckpoints | null;
  private readonly lastSent = new Map<TaskKey, string>();
  /** By task: the last message to the agent about the checkpoints that it must not delete. */
  private readonly lastKept = new Map<TaskKey, string>();

  constructor(
    identity: { caller: AgentIdentity; instanceId: string; bootId: string },
    stream: AgentStream,
    leases: LeaseGrants,
    doubt: Condition | null = null,
    isSampled: TraceSampler | null = null,
    keptOf: (job: Job) => KeptCheckpoints | null = () => null,
  ) {
    this.caller = identity.caller;
    this.node = identity.caller.node;
    this.instanceId = identity.instanceId;
    this.bootId = identity.bootId;
    this.stream = stream;
    this.leases = leases;
    this.doubt = doubt;
    this.isSampled = isSampled;
    this.keptOf = keptOf;
  }

  /** Sends the first message, which has all desired tasks, and then orders for the other tasks that the agent has. */
  welcome(
    settings: WelcomeSettings,
    jobs: Iterable<Job>,
    observed: readonly TaskRef[],
    findJob: (id: JobId) => Job | undefined,
    existed: (id: JobId) => boolean,
  ): void {
    const desired: Assignment[] = [];
    for (const job of jobs) {
      const attempt = currentAttempt(job);
      for (const task of attempt?.tasks ?? []) {
        if (attempt === null || task.node !== this.node) continue;
        const ref = { jobId: job.id, attempt: job.lastAttempt, nodeRank: task.nodeRank };
        const wanted = desiredOf(job, ref, this.node);
        if (wanted.kind === 'forget') continue;
        this.lastSent.set(taskKey(ref), orderKey(wanted));
        desired.push(this.assignment(job, attempt, task, wanted));
      }
    }
    this.stream.write({
      welcome: {
        nodeName: this.node,
        ...settings,
        desired,
      },
    });
    for (const key of this.lastSent.keys()) {
      const ref = parseTaskKey(key);
      if (ref !== null) this.syncKept(ref, findJob(ref.jobId));
    }
    for (const ref of observed) {
      if (this.lastSent.has(taskKey(ref)) || !existed(ref.jobId)) continue;
      const job = findJob(ref.jobId);
      if (job === undefined || ref.attempt <= job.lastAttempt) this.sync(ref, job);
    }
  }

  /** Sends the order for a task, unless it equals the last one sent. */
  sync(ref: TaskRef, job: Job | undefined): void {
    const key = taskKey(ref);
    const desired = desiredOf(job, ref, this.node);
    if (this.lastSent.get(key) !== orderKey(desired)) {
      this.send(ref, job, desired);
      if (desired.kind === 'forget') this.lastSent.delete(key);
      else this.lastSent.set(key, orderKey(desired));
    }
    if (desired.kind === 'forget') this.lastKept.delete(key);
    else this.syncKept(ref, job);
  }

  /** Sends which of its checkpoints are needed, unless the agent has that already. Only the node of rank 0 deletes any. */
  private syncKept(ref: TaskRef, job: Job | undefined): void {
    const kept = job === undefined || ref.nodeRank !== 0 ? null : this.keptOf(job);
    if (kept === null) return;
    const key = taskKey(ref);
    const text = JSON.stringify(kept);
    if (this.lastKept.get(key) === text) return;
    this.lastKept.set(key, text);
    const { held, decidedSavedAtMs } = kept;
    this.stream.write({ keepCheckpoints: { task: taskRefToWire(ref), held: [...held], decidedSavedAtMs } });
  }

  private send(ref: TaskRef, job: Job | undefined, desired: Desired): void {
    const attempt = currentAttempt(job);
    const task = heldTask(job, ref, this.node);
    switch (desired.kind) {
      case 'prepare':
        if (job !== undefined && attempt !== null && task !== undefined)
          this.stream.write({ prepare: this.assignment(job, attempt, task, desired) });
        break;
      case 'check':
        this.stream.write({ check: { task: taskRefToWire(ref), check: pathCheckToWire(desired.check) } });
        break;
      case 'start':
        if (attempt !== null)
          this.stream.write({ start: startOf(ref, desired, this.leases.grant(this.node, attempt)) });
        break;
      case 'stop':
        this.stream.write({ stop: stopOf(ref, desired) });
        break;
      case 'forget':
        this.stream.write({ forget: { task: taskRefToWire(ref) } });
        break;
      default: {
        const never: never = desired;
        throw new Error(`unknown desire ${JSON.stringify(never)}`);
      }
    }
  }

  /** After a change of a task. For one that ended before this agent received an order for it, nothing is sent. */
  syncChanged(ref: TaskRef, job: Job | undefined): void {
    if (this.lastSent.has(taskKey(ref)) || desiredOf(job, ref, this.node).kind !== 'forget')
      this.sync(ref, job);
  }

  /**
   * Sends again the orders that the agent, by its own report, has not received. A stream does not lose a message in its middle, but
   * an agent that waits for ever because one was lost would look healthy. What crosses with the heartbeat is sent
   * twice, and that harms nothing.
   */
  remind(reports: readonly TaskReport[], findJob: (id: JobId) => Job | undefined): void {
    const observed = new Map(reports.map(({ task, state }) => [taskKey(task), state]));
    for (const key of this.lastSent.keys()) {
      const ref = parseTaskKey(key);
      const job = ref === null ? undefined : findJob(ref.jobId);
      const attempt = currentAttempt(job);
      const task = ref === null ? undefined : heldTask(job, ref, this.node);
      if (ref === null || job === undefined || attempt === null || task === undefined) continue;
      const desired = desiredOf(job, ref, this.node);
      if (desired.kind === 'forget' || isReceived(desired, task, observed.get(key))) continue;
      this.stream.write({ prepare: this.assignment(job, attempt, task, desired) });
    }
  }

  /** @param wallMs lets the agent compute the error of its own clock */
  acknowledge(seq: number, verdicts: readonly TaskVerdict[], wallMs: number): void {
    this.stream.write({ heartbeatAck: { seq, verdicts: [...verdicts], wallMs } });
  }

  /** A user has confirmed that it is dealt with. */
  clearCondition({ kind, gpuUuid }: Pick<Condition, 'kind' | 'gpuUuid'>): void {
    this.stream.write({ clearCondition: gpuUuid === null ? { kind } : { kind, gpuUuid } });
  }

  /** Asks the agent for a heartbeat now. */
  askForBeat(): void {
    this.stream.write({ beat: {} });
  }

  /** Asks the agent to renew its credential. @returns false when it was asked a moment ago */
  askToRenew(nowMs: number): boolean {
    if (nowMs < this.askAgainMs) return false;
    this.askAgainMs = nowMs + renewalAskedEveryMs;
    this.stream.write({ renewCredential: {} });
    return true;
  }

  /** What it has offered is valid. @param certificate PEM; null: it offered a secret */
  credentialTaken(certificate: string | null): void {
    this.stream.write({ credentialTaken: certificate === null ? {} : { certificate } });
  }

  end(): void {
    this.stream.end();
  }

  /** The complete order for a task. It grants the lease of the task, so it is sent at once. */
  private assignment(job: Job, attempt: Attempt, task: Task, desired: Desired): Assignment {
    const ref = { jobId: job.id, attempt: attempt.number, nodeRank: task.nodeRank };
    const leaseMs = this.leases.grant(this.node, attempt);
    const traceparent = traceparentOfAttempt(job, attempt.number, this.isSampled);
    const look = task.nodeRank === 0 && !isReleased(attempt) ? lookOrderOf(job, attempt) : null;
    return {
      task: taskRefToWire(ref),
      specJson: specText(attemptSpec(job)),
      user: job.user,
      nodeCount: attempt.tasks.length,
      gpuUuids: [...task.gpuUuids],
      ...(job.array === null ? {} : { arrayIndex: job.array.index, arraySize: job.array.size }),
      check: desired.kind === 'check' ? pathCheckToWire(desired.check) : null,
      start: desired.kind === 'start' ? startOf(ref, desired, leaseMs) : null,
      stop: desired.kind === 'stop' ? stopOf(ref, desired) : null,
      ...leaseToWire(leaseMs),
      resume: attempt.resume && resumeToWire(attempt.resume),
      checkpointJobId: job.checkpointJobId,
      lineage: [...job.lineage],
      batchScale: job.batchScale,
      lrScale: job.lrScale,
      ...corruptOn(job, this.node),
      proof: this.leases.proofOf(this.node, ref, job.submitSeq),
      ...(traceparent === null ? {} : { traceparent }),
      look: look && lookOrderToWire(look),
    };
  }
}

/**
 * Checkpoints that this node must set aside, and those that it must read again first. A program may write one name again and
 * again: only what was last seen under it counts, and what lies on another node's own disk is not the file of that name here.
 */
function corruptOn({ checkpoints }: Job, node: NodeName): Pick<Assignment, 'quarantine' | 'doubted'> {
  const seenHere = checkpoints.filter((each) => each.shared || each.node === node);
  const newest = new Map(seenHere.map((each) => [each.name, each]));
  const corrupt = [...newest.values()].filter(({ verdict }) => verdict === 'corrupt');
  const named = (each: Checkpoint): CorruptCheckpoint => ({ name: each.name, version: each.version });
  return {
    quarantine: corrupt.filter(({ reread }) => reread).map(named),
    doubted: corrupt.filter(({ reread }) => !reread).map(named),
  };
}

function startOf(task: TaskRef, desired: Extract<Desired, { kind: 'start' }>, leaseMs: number): Start {
  const { addr, port, addresses, resume } = desired;
  return {
    task: taskRefToWire(task),
    masterAddr: addr,
    masterPort: port,
    addresses: [...addresses],
    resume: { resume: resume && resumeToWire(resume) },
    ...leaseToWire(leaseMs),
  };
}

function stopOf(task: TaskRef, { graceMs, signal }: Extract<Desired, { kind: 'stop' }>): Stop {
  return { task: taskRefToWire(task), graceMs, signal };
}
