/**
 * One connected agent, and what it was last told about each task.
 *
 * `sync` compares what should be with what was said and says the difference, so that telling an agent something twice,
 * or never because the stream broke, needs no thought anywhere else: a new connection starts from nothing said.
 */

import type { Condition } from '@muster/common/conditions';
import type { Assign } from '@muster/common/gen/muster/v1/Assign';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { TaskVerdict } from '@muster/common/gen/muster/v1/TaskVerdict';
import type { JobId, NodeName, TaskKey, TaskRef } from '@muster/common/ids';
import { parseTaskKey, taskKey } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import { taskRefToWire } from '@muster/common/wire/taskRef';
import { currentAttempt, type Job, type Task } from '../model.ts';
import { specText } from '../specText.ts';
import { type Desired, desiredOf, heldTask, isHeard } from './desired.ts';

export interface AgentStream {
  write(message: CoordinatorMessage): void;
  end(): void;
}

export class AgentSession {
  readonly node: NodeName;
  readonly instanceId: string;
  readonly bootId: string;
  /** Its agent has begun to talk on a newer connection. */
  superseded = false;
  private readonly stream: AgentStream;
  private readonly said = new Map<TaskKey, Desired['kind']>();

  constructor(identity: { node: NodeName; instanceId: string; bootId: string }, stream: AgentStream) {
    this.node = identity.node;
    this.instanceId = identity.instanceId;
    this.bootId = identity.bootId;
    this.stream = stream;
  }

  /** First message: the whole desired set, and for what the agent has beside it, what to do. */
  welcome(
    settings: { heartbeatIntervalMs: number; leaseMs: number; term: number },
    jobs: Iterable<Job>,
    observed: readonly TaskRef[],
    findJob: (id: JobId) => Job | undefined,
    existed: (id: JobId) => boolean,
  ): void {
    const desired: Assign[] = [];
    for (const job of jobs) {
      for (const task of currentAttempt(job)?.tasks ?? []) {
        if (task.node !== this.node) continue;
        const ref = { jobId: job.id, attempt: job.lastAttempt, nodeRank: task.nodeRank };
        const wanted = desiredOf(job, ref, this.node);
        if (wanted.kind === 'forget') continue;
        this.said.set(taskKey(ref), wanted.kind);
        desired.push(assignment(job, ref, task, wanted));
      }
    }
    this.stream.write({
      welcome: {
        nodeName: this.node,
        heartbeatIntervalMs: settings.heartbeatIntervalMs,
        leaseMs: settings.leaseMs,
        term: settings.term,
        desired,
      },
    });
    for (const ref of observed) {
      if (this.said.has(taskKey(ref)) || !existed(ref.jobId)) continue;
      this.sync(ref, findJob(ref.jobId));
    }
  }

  /** Tells the agent what it should do about a task, unless that was what it was told last. */
  sync(ref: TaskRef, job: Job | undefined): void {
    const key = taskKey(ref);
    const task = heldTask(job, ref, this.node);
    const desired = desiredOf(job, ref, this.node);
    if (this.said.get(key) === desired.kind) return;
    const wire = taskRefToWire(ref);
    switch (desired.kind) {
      case 'assign':
        if (job !== undefined && task !== undefined)
          this.stream.write({ assign: assignment(job, ref, task, desired) });
        break;
      case 'release':
        this.stream.write({ release: { task: wire, masterAddr: desired.addr, masterPort: desired.port } });
        break;
      case 'stop':
        this.stream.write({ stop: { task: wire, graceMs: desired.graceMs, signal: desired.signal } });
        break;
      case 'forget':
        this.stream.write({ forget: { task: wire } });
        break;
      default: {
        const never: never = desired;
        throw new Error(`unknown desire ${JSON.stringify(never)}`);
      }
    }
    if (desired.kind === 'forget') this.said.delete(key);
    else this.said.set(key, desired.kind);
  }

  /** After a change of a task. One that ended without this agent having been told of it needs no word. */
  syncChanged(ref: TaskRef, job: Job | undefined): void {
    if (this.said.has(taskKey(ref)) || desiredOf(job, ref, this.node).kind !== 'forget') this.sync(ref, job);
  }

  /**
   * Says again what the agent, by its own account, has not heard. A stream does not lose a message in its middle, but
   * an agent that waits for ever because one was lost would look healthy. What crosses with the heartbeat is said
   * twice, and that harms nothing.
   */
  remind(reports: readonly TaskReport[], findJob: (id: JobId) => Job | undefined): void {
    const observed = new Map(reports.map(({ task, state }) => [taskKey(task), state]));
    for (const key of this.said.keys()) {
      const ref = parseTaskKey(key);
      const job = ref === null ? undefined : findJob(ref.jobId);
      const task = ref === null ? undefined : heldTask(job, ref, this.node);
      if (ref === null || job === undefined || task === undefined) continue;
      const desired = desiredOf(job, ref, this.node);
      if (desired.kind === 'forget' || isHeard(desired, task.state, observed.get(key))) continue;
      this.stream.write({ assign: assignment(job, ref, task, desired) });
    }
  }

  /** @param wallMs for the agent to tell how far its own clock is off */
  acknowledge(seq: number, verdicts: readonly TaskVerdict[], wallMs: number): void {
    this.stream.write({ heartbeatAck: { seq, verdicts: [...verdicts], wallMs } });
  }

  /** A person says that it is dealt with. */
  clearCondition({ kind, gpuUuid }: Pick<Condition, 'kind' | 'gpuUuid'>): void {
    this.stream.write({ clearCondition: { kind, gpuUuid: gpuUuid ?? '' } });
  }

  end(): void {
    this.stream.end();
  }
}

function assignment(job: Job, ref: TaskRef, task: Task, desired: Desired): Assign {
  const wire = taskRefToWire(ref);
  return {
    task: wire,
    specJson: specText(job.spec),
    nodeCount: currentAttempt(job)?.tasks.length ?? 1,
    gpuUuids: [...task.gpuUuids],
    arrayIndex: job.array?.index ?? 0,
    arraySize: job.array?.size ?? 0,
    release:
      desired.kind === 'release' ? { task: wire, masterAddr: desired.addr, masterPort: desired.port } : null,
    stop: desired.kind === 'stop' ? { task: wire, graceMs: desired.graceMs, signal: desired.signal } : null,
  };
}
