/**
 * For how long the coordinator has let each task run, from outside: from the questions that agents sent and the answers
 * that reached them, in the time of the world. What the two sides make of it is theirs.
 */
import type { AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Assignment__Output } from '@muster/common/gen/muster/v1/Assignment';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import { type TaskKey, taskKey } from '@muster/common/ids';
import { taskRefFromWire } from '@muster/common/wire/codec';
import type { Machine } from './machine.ts';
import type { Timeline } from './timeline.ts';

/** Heartbeats come every second; a longer pause is one. */
const pauseMs = 2_500;

interface Dialogue {
  /** When the newest question that was answered had been sent. */
  askedMs: number;
  answeredMs: number;
  /** Since when answers have come without a pause. */
  steadySinceMs: number;
}

/** When the questions of one connection were sent. */
export class HeartbeatTimes {
  private helloMs = 0;
  private readonly heartbeatsMs = new Map<number, number>();

  note({ hello, heartbeat }: Pick<AgentMessage__Output, 'hello' | 'heartbeat'>, nowMs: number): void {
    if (hello != null) this.helloMs = nowMs;
    if (heartbeat != null) this.heartbeatsMs.set(heartbeat.seq, nowMs);
  }

  /** null: it is no answer. */
  askedMs({ welcome, heartbeatAck }: CoordinatorMessage__Output): number | null {
    if (welcome != null) return this.helloMs;
    return heartbeatAck == null ? null : (this.heartbeatsMs.get(heartbeatAck.seq) ?? null);
  }
}

export class Grants {
  private readonly untilMs = new Map<TaskKey, number>();
  private readonly dialogues = new Map<string, Dialogue>();
  private readonly timeline: Timeline;

  constructor(timeline: Timeline) {
    this.timeline = timeline;
  }

  /** A message has reached the agent. */
  take(machine: Machine, message: CoordinatorMessage__Output, askedMs: number | null): void {
    const dialogue = this.dialogueWith(machine.name);
    if (askedMs !== null) this.note(dialogue, askedMs);
    const grant = (wire: Assignment__Output['task'], leaseMs: number | undefined, fromMs: number) => {
      const task = taskRefFromWire(wire);
      if (task === null) return;
      const untilMs =
        leaseMs === undefined ? Number.POSITIVE_INFINITY : fromMs + leaseMs / machine.clock.rate;
      this.untilMs.set(taskKey(task), Math.max(untilMs, this.mayRunUntilMs(taskKey(task))));
    };
    const assigned = (each: Assignment__Output, fromMs: number) => {
      if (each.start !== null || each.stop !== null) grant(each.task, each.leaseMs, fromMs);
    };
    const { welcome, prepare, start, heartbeatAck } = message;
    for (const each of welcome?.desired ?? []) assigned(each, askedMs ?? 0);
    if (prepare != null) assigned(prepare, dialogue.askedMs);
    if (start != null) grant(start.task, start.leaseMs, dialogue.askedMs);
    for (const { task, verdict, leaseMs } of heartbeatAck?.verdicts ?? []) {
      const letsRun = verdict === 'VERDICT_RUN' || verdict === 'VERDICT_STOP';
      if (letsRun && askedMs !== null) grant(task, leaseMs, askedMs);
    }
  }

  /** The last moment; minus infinity for a task that was never allowed to run. */
  mayRunUntilMs(key: TaskKey): number {
    return this.untilMs.get(key) ?? Number.NEGATIVE_INFINITY;
  }

  /** For how long a node has been getting fresh answers without a pause. */
  steadyForMs(machine: string): number {
    const { nowMs } = this.timeline;
    const { answeredMs, askedMs, steadySinceMs } = this.dialogueWith(machine);
    const isFresh = nowMs - answeredMs <= pauseMs && nowMs - askedMs <= pauseMs;
    return isFresh ? nowMs - steadySinceMs : 0;
  }

  private dialogueWith(machine: string): Dialogue {
    const never = Number.NEGATIVE_INFINITY;
    const known = this.dialogues.get(machine) ?? { askedMs: never, answeredMs: never, steadySinceMs: never };
    this.dialogues.set(machine, known);
    return known;
  }

  private note(dialogue: Dialogue, askedMs: number): void {
    const { nowMs } = this.timeline;
    const isLate = nowMs - askedMs > pauseMs;
    if (nowMs - dialogue.answeredMs > pauseMs || isLate) dialogue.steadySinceMs = nowMs;
    dialogue.answeredMs = nowMs;
    dialogue.askedMs = Math.max(dialogue.askedMs, askedMs);
  }
}
