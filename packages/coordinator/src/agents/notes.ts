/**
 * What agents say in passing and is worth no commit: in memory only, and said again by every agent that dials in. Nothing is
 * decided by it but the order of failures.
 */
import { type NodeName, type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { HangSign, TrainingProgress, TrainingSign } from '@muster/common/training';
import type { TaskReport } from '@muster/common/views';
import type { Committed } from '../state/committed.ts';

export interface TaskNote {
  /** Its lease has run out on its node: it is there and runs no instruction. */
  readonly frozen: boolean;
  /** What its node is busy with before it is prepared. */
  readonly doing: string | null;
  /** Where its training is. null: its output tells of none. */
  readonly training: TrainingProgress | null;
  /** null: it makes progress, or nobody can tell. */
  readonly hang: HangSign | null;
  /** What was noticed in its output, the newest of each kind. */
  readonly signs: readonly TrainingSign[];
}

const nothingNoted: TaskNote = { frozen: false, doing: null, training: null, hang: null, signs: [] };

/** A word for people, not a log. */
const doingLengthMax = 200;

export class AgentNotes {
  private readonly clocks = new Map<NodeName, NodeClock>();
  private readonly tasks = new Map<TaskKey, TaskNote>();

  of(task: TaskRef): TaskNote {
    return this.tasks.get(taskKey(task)) ?? nothingNoted;
  }

  /** @returns whether it has been frozen or thawed since the last report */
  note({ task, state, frozen, doing, training, hang }: TaskReport): boolean {
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

  /** Something was noticed in the output of a task that runs. */
  noteSign(task: TaskRef, sign: TrainingSign): void {
    const before = this.of(task);
    const signs = [...before.signs.filter(({ kind }) => kind !== sign.kind), sign];
    this.tasks.set(taskKey(task), { ...before, signs });
  }

  /** A heartbeat came. @param wallMs our wall clock now */
  heard(node: NodeName, bootId: string, sent: SentAt, wallMs: number): void {
    let clock = this.clocks.get(node);
    if (clock?.bootId !== bootId) {
      clock = new NodeClock(bootId);
      this.clocks.set(node, clock);
    }
    clock.heard(sent, wallMs);
  }

  /**
   * A moment by a node's wall clock, as it is set now, by ours; as near as can be told. null: nothing is known of that clock.
   * Of an earlier boot too.
   */
  wallOfNode(node: NodeName, nodeWallMs: number): number | null {
    return this.clocks.get(node)?.wallOfNode(nodeWallMs) ?? null;
  }

  /** A moment of a node's CLOCK_BOOTTIME by our wall clock, as near as can be told; null: nothing is known of that boot. */
  wallOf(node: NodeName, bootId: string, boottimeMs: number): number | null {
    const clock = this.clocks.get(node);
    return clock?.bootId === bootId ? clock.wallOf(boottimeMs) : null;
  }

  /** Drops what is over. */
  committed({ attempts }: Pick<Committed, 'attempts'>): void {
    for (const { jobId, attempt } of attempts) {
      for (const { nodeRank, state } of attempt.tasks) {
        if (state === 'ended') this.tasks.delete(taskKey({ jobId, attempt: attempt.number, nodeRank }));
      }
    }
  }
}

/** When a message of a node was sent, by its own clocks. */
export interface SentAt {
  /** CLOCK_BOOTTIME. */
  readonly sentBoottimeMs: number;
  /** Milliseconds since 1970; 0: an agent that does not say it. */
  readonly sentWallMs: number;
}

/** Enough for one that was not delayed to be among them, and few enough that a drift between the clocks does not show. */
const samplesMax = 16;

/**
 * How a node's clock stands to ours. A message only ever comes late, so the smallest difference of the newest is the
 * nearest to the truth.
 */
class NodeClock {
  readonly bootId: string;
  private readonly differencesMs: number[] = [];
  private wallDifferenceMs: number | null = null;

  constructor(bootId: string) {
    this.bootId = bootId;
  }

  heard({ sentBoottimeMs, sentWallMs }: SentAt, wallMs: number): void {
    this.differencesMs.push(wallMs - sentBoottimeMs);
    if (this.differencesMs.length > samplesMax) this.differencesMs.shift();
    // That clock may be set at any time: only the newest message tells how it stands.
    this.wallDifferenceMs = sentWallMs === 0 ? null : wallMs - sentWallMs;
  }

  wallOfNode(nodeWallMs: number): number | null {
    return this.wallDifferenceMs === null ? null : nodeWallMs + this.wallDifferenceMs;
  }

  wallOf(boottimeMs: number): number {
    return boottimeMs + Math.min(...this.differencesMs);
  }
}
