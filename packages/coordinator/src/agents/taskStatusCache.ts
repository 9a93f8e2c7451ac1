/**
 * The status of running tasks that is not worth a commit. It is kept in memory only, and every agent reports it again when it
 * connects. The only decision that uses it is the order of failures.
 */
import { type NodeName, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { HangSign, TrainingProgress, TrainingSign } from '@muster/common/training';
import type { TaskReport } from '@muster/common/views';
import type { Committed } from '../state/committed.ts';

export interface TaskStatus {
  /** Its lease has expired on its node, so the task exists but executes nothing. */
  readonly frozen: boolean;
  /** The current step of its preparation, such as the pull of an image. */
  readonly doing: string | null;
  /** The progress of its training. It is null if the output shows none. */
  readonly training: TrainingProgress | null;
  /** The sign that the task hangs. It is null if the task makes progress, or if that is unknown. */
  readonly hang: HangSign | null;
  /** The newest sign of each kind in its output. */
  readonly signs: readonly TrainingSign[];
}

const noStatus: TaskStatus = { frozen: false, doing: null, training: null, hang: null, signs: [] };

/** The longest text of `doing`, which is a short note for users. */
const doingLengthMax = 200;

export class TaskStatusCache {
  private readonly clocks = new Map<NodeName, NodeClock>();
  private readonly tasks = new Map<TaskKey, TaskStatus>();

  of(task: TaskRef): TaskStatus {
    return this.tasks.get(taskKey(task)) ?? noStatus;
  }

  /** @returns whether it has been frozen or thawed since the last report */
  record({ task, state, frozen, doing, training, hang }: TaskReport): boolean {
    const key = taskKey(task);
    const before = this.of(task);
    if (state === 'ended') {
      this.tasks.delete(key);
      return false;
    }
    this.tasks.set(key, {
      frozen,
      doing: doing?.slice(0, doingLengthMax) ?? null,
      training,
      hang,
      signs: before.signs,
    });
    return before.frozen !== frozen;
  }

  /** Records a sign in the output of a running task. */
  recordSign(task: TaskRef, sign: TrainingSign): void {
    const before = this.of(task);
    const signs = [...before.signs.filter(({ kind }) => kind !== sign.kind), sign];
    this.tasks.set(taskKey(task), { ...before, signs });
  }

  /**
   * Records the clocks of a heartbeat.
   * @param wallMs the current time of this coordinator
   * @param startedWallMs when the node's boot began, as an earlier run has learned it. Null if unknown. The first message to a new run
   *   may have waited for long, and would pass for the clock of the node.
   */
  noteClock(
    node: NodeName,
    bootId: string,
    sent: SentAt,
    wallMs: number,
    startedWallMs: number | null = null,
  ): void {
    let clock = this.clocks.get(node);
    if (clock?.bootId !== bootId) {
      clock = new NodeClock(bootId, startedWallMs);
      this.clocks.set(node, clock);
    }
    clock.note(sent, wallMs);
  }

  /**
   * Converts a time of the node's current wall clock, also from an earlier boot, into the wall clock of this coordinator.
   * @returns null if nothing is known about that clock
   */
  wallOfNode(node: NodeName, nodeWallMs: number): number | null {
    return this.clocks.get(node)?.wallOfNode(nodeWallMs) ?? null;
  }

  /** Converts a time of the node's CLOCK_BOOTTIME into our wall clock. @returns null if nothing is known about that boot */
  wallOf(node: NodeName, bootId: string, boottimeMs: number): number | null {
    const clock = this.clocks.get(node);
    return clock?.bootId === bootId ? clock.wallOf(boottimeMs) : null;
  }

  /** Converts a time of CLOCK_BOOTTIME in the node's current boot into our clock. @returns null if nothing is known about it */
  wallOfBoottime(node: NodeName, boottimeMs: number): number | null {
    return this.clocks.get(node)?.wallOf(boottimeMs) ?? null;
  }

  /** Our clock was set by this many milliseconds, and all that was learned of other clocks by it. */
  clockWasSet(byMs: number): void {
    for (const clock of this.clocks.values()) clock.move(byMs);
  }

  /** Removes the status of ended tasks, and the clocks of removed nodes. */
  committed({ attempts, removedNodes }: Pick<Committed, 'attempts' | 'removedNodes'>): void {
    for (const node of removedNodes) this.clocks.delete(node);
    for (const { jobId, attempt } of attempts) {
      for (const { nodeRank, state } of attempt.tasks) {
        if (state === 'ended') this.tasks.delete(taskKey({ jobId, attempt: attempt.number, nodeRank }));
      }
    }
  }
}

/** The time at which a node sent a message, on its own clocks. */
export interface SentAt {
  /** CLOCK_BOOTTIME. */
  readonly sentBoottimeMs: number;
  /** Milliseconds since 1970. It is 0 for an agent that does not report it. */
  readonly sentWallMs: number;
}

/** The number of samples: enough for one without delay, and few enough that the clocks do not drift apart meanwhile. */
const samplesMax = 16;

/**
 * The difference between a node's clock and ours. Messages can only be late, so the smallest difference of the newest
 * samples is the best estimate.
 */
class NodeClock {
  readonly bootId: string;
  private readonly differencesMs: number[] = [];
  private wallDifferenceMs: number | null = null;

  constructor(bootId: string, startedWallMs: number | null) {
    this.bootId = bootId;
    if (startedWallMs !== null) this.differencesMs.push(startedWallMs);
  }

  note({ sentBoottimeMs, sentWallMs }: SentAt, wallMs: number): void {
    this.differencesMs.push(wallMs - sentBoottimeMs);
    if (this.differencesMs.length > samplesMax) this.differencesMs.shift();
    // The wall clock of a node may be changed at any time, so only the newest message counts.
    this.wallDifferenceMs = sentWallMs === 0 ? null : wallMs - sentWallMs;
  }

  move(byMs: number): void {
    this.differencesMs.splice(0, samplesMax, ...this.differencesMs.map((each) => each + byMs));
    if (this.wallDifferenceMs !== null) this.wallDifferenceMs += byMs;
  }

  wallOfNode(nodeWallMs: number): number | null {
    return this.wallDifferenceMs === null ? null : Math.round(nodeWallMs + this.wallDifferenceMs);
  }

  wallOf(boottimeMs: number): number {
    return Math.round(boottimeMs + Math.min(...this.differencesMs));
  }
}
