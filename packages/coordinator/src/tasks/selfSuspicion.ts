/** Notices when most nodes are silent, and when they are back. One pass; idempotent. */

import type { NodeName } from '@muster/common/ids';
import type { AgentRegistry } from '../agents/registry.ts';
import { coordinatorPart } from '../caller.ts';
import { type SeenNode, suspectOurselves } from '../leases/suspicion.ts';
import type { Loop } from '../loop.ts';
import { clusterSubject } from '../model.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('suspicion of itself');

export interface SelfSuspicionParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly monotonicMs: () => number;
  /** Nodes that fall silent within so long count together, and have as long to come back together. */
  readonly windowMs: number;
}

/** An event names so many nodes; the rest is counted. */
const namedMax = 100;

export class SelfSuspicion {
  private readonly parts: SelfSuspicionParts;
  private fallen: ReadonlySet<NodeName> | null = null;
  /** Of them and those that answer, when we last looked. */
  private seen = 0;
  /** Monotonic: when trust came back. */
  private trustedSinceMs: number = Number.NEGATIVE_INFINITY;

  constructor(parts: SelfSuspicionParts) {
    this.parts = parts;
  }

  /** Nodes for whose silence we suspect ourselves; empty: we do not. */
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
   * Why nobody is fenced though trust is back: what fell silent together comes back one after the other, and the last of
   * them needs no new attempt only because the first was quicker. null: who is silent now is so by himself.
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
    this.fallen = suspectOurselves(before, seen, monotonicMs(), windowMs);
    this.seen = seen.length;
    if ((before === null) === (this.fallen === null)) return [];
    if (this.fallen === null) this.trustedSinceMs = monotonicMs();
    const kind = this.fallen === null ? 'cluster.trusted' : 'cluster.suspect';
    const silent = [...(this.fallen ?? [])].sort();
    const data = { silentNodes: silent.length, nodes: seen.length, names: silent.slice(0, namedMax) };
    return [loop.run(caller, (draft, nowMs) => draft.emit({ kind, subject: clusterSubject, data }, nowMs))];
  }

  /**
   * Of all nodes that ever joined, those whose silence means something: heard since our start, or with tasks. One that was
   * given away last year is missed by nobody.
   */
  private look(): readonly SeenNode[] {
    const { agents, state } = this.parts;
    const expected = new Set([...agents.heardNodes(), ...heldTasks(state.jobs.values()).keys()]);
    return [...expected].flatMap((node) => {
      const silence = agents.silenceOf(node);
      return silence?.isDead === true ? [] : [{ node, silentSinceMs: silence?.sinceMs ?? null }];
    });
  }
}
