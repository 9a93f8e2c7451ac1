/** Detects when most nodes become silent together, and when they are back. One pass is idempotent. */

import { clusterSubject } from '@muster/common/eventKinds';
import type { NodeName } from '@muster/common/ids';
import type { AgentRegistry } from '../agents/registry.ts';
import { coordinatorPart } from '../caller.ts';
import { leavingReason } from '../commands/drains.ts';
import { detectPartition, type SeenNode } from '../leases/partition.ts';
import type { Loop } from '../loop.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('suspicion of itself');

export interface PartitionDetectorParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly monotonicMs: () => number;
  /** Nodes that become silent within this time count together, and have the same time to come back. */
  readonly windowMs: number;
}

/** The number of nodes that an event names. The rest is counted. */
const namedMax = 100;

export class PartitionDetector {
  private readonly parts: PartitionDetectorParts;
  private fallen: ReadonlySet<NodeName> | null = null;
  /** The number of silent and answering nodes in the last pass. */
  private seen = 0;
  /** The monotonic time since which no partition is suspected. */
  private trustedSinceMs: number = Number.NEGATIVE_INFINITY;

  constructor(parts: PartitionDetectorParts) {
    this.parts = parts;
  }

  /** The nodes that became silent together. The set is empty while no partition is suspected. */
  get suspects(): ReadonlySet<NodeName> {
    return this.fallen ?? new Set();
  }

  paused(): string | null {
    if (this.fallen === null) return null;
    return (
      `${this.fallen.size} of ${this.seen} nodes became silent together, so this coordinator may itself be partitioned; ` +
      'it resumes once half of them respond; for a node that is certainly dead: muster node confirm-dead NAME'
    );
  }

  /**
   * The reason why nodes are not fenced yet after a partition: nodes that became silent together come back one after the
   * other, and the last of them must not lose its tasks because the first was quicker. It is null after that time.
   */
  settling(): string | null {
    const { monotonicMs, windowMs } = this.parts;
    const isOver = monotonicMs() >= this.trustedSinceMs + windowMs;
    return isOver ? null : 'nodes that became silent together are coming back';
  }

  run(): readonly Promise<void>[] {
    const { loop, monotonicMs, windowMs } = this.parts;
    const seen = this.look();
    const before = this.fallen;
    this.fallen = detectPartition(before, seen, monotonicMs(), windowMs);
    this.seen = seen.length;
    if ((before === null) === (this.fallen === null)) return [];
    if (this.fallen === null) this.trustedSinceMs = monotonicMs();
    const kind = this.fallen === null ? 'cluster.trusted' : 'cluster.suspect';
    const silent = [...(this.fallen ?? [])].sort();
    const data = { silentNodes: silent.length, nodes: seen.length, names: silent.slice(0, namedMax) };
    return [loop.run(caller, (draft, nowMs) => draft.emit({ kind, subject: clusterSubject, data }, nowMs))];
  }

  /**
   * The nodes whose silence counts: those with contact since this coordinator started, and those with tasks. A node that left the
   * cluster long ago does not count. Nor does one whose machine has announced that it will be switched off, and whose tasks have ended.
   */
  private look(): readonly SeenNode[] {
    const { agents, state } = this.parts;
    const held = heldTasks(state.jobs.values());
    const expected = new Set([...agents.contactedNodes(), ...held.keys()]);
    const hasLeft = (node: NodeName) =>
      state.nodes.get(node)?.drain?.reason === leavingReason && !held.has(node);
    return [...expected].flatMap((node) => {
      const silence = agents.silenceOf(node);
      const isOver = silence !== null && (silence.isDead || hasLeft(node));
      return isOver ? [] : [{ node, silentSinceMs: silence?.sinceMs ?? null }];
    });
  }
}
