/**
 * Machines that are refused because another one has their identity. Nothing here is stored: after a restart a refused agent
 * tries again within half a minute, and is seen again.
 */
import type { Clock } from '@muster/common/clock';
import type { Condition } from '@muster/common/conditions';
import { messageOf } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { AgentRegistry } from '../agents/registry.ts';
import { coordinatorPart } from '../caller.ts';
import { duplicateCondition, emitDuplicate, noteDuplicate, type Seen } from '../commands/identity.ts';
import type { Loop } from '../loop.ts';
import type { MachineOrigin, Node } from '../model.ts';
import type { ClusterState } from '../state/state.ts';

/** Delay after which a heartbeat shows that the earlier machine is still there. What arrives sooner may have waited on its way. */
const heardAfterMs = 250;
/** A refused agent tries again every half a minute. One that has not for this long is gone. */
const quietAfterMs = 5 * 60_000;

/** A copy tries again within half a minute. */
const repeatedWithinMs = 60_000;

interface Episode {
  /** The refused machine: another one is another event. */
  readonly key: string;
  readonly condition: Condition;
  readonly lastSeenMonoMs: number;
}

/** A machine that may be the same one after a fast reboot, until the earlier one is heard again. */
interface Suspect {
  readonly refused: Seen;
  readonly sinceMonoMs: number;
}

export interface DuplicateParts {
  readonly state: Pick<ClusterState, 'nodes'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly agents: AgentRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Duplicates {
  private readonly parts: DuplicateParts;
  private readonly episodes = new Map<NodeName, Episode>();
  /** The last refusal that may have been a late Hello, by the monotonic clock. */
  private readonly lateHellos = new Map<NodeName, number>();
  private readonly suspects = new Map<NodeName, Suspect>();

  constructor(parts: DuplicateParts) {
    this.parts = parts;
  }

  /** The condition of a node while machines are refused under its name. Null: none is. */
  conditionOf(node: NodeName): Condition | null {
    return this.episodes.get(node)?.condition ?? null;
  }

  /**
   * An agent was refused under the name of this node.
   * @param isLikeWelcomed only its token tells it from the welcomed one. A Hello of that one may have been late, so it counts
   *   when it is repeated.
   */
  refused(node: NodeName, refused: Seen, isLikeWelcomed: boolean): void {
    const { clock, state } = this.parts;
    const known = state.nodes.get(node);
    if (known === undefined) return;
    this.suspects.delete(node);
    const before = this.episodes.get(node);
    const key = `${refused.bootId} ${refused.hostName} ${refused.address}`;
    const lateMonoMs = this.lateHellos.get(node) ?? null;
    if (isLikeWelcomed && before?.key !== key) {
      this.lateHellos.set(node, clock.monotonicMs());
      if (lateMonoMs === null || clock.monotonicMs() - lateMonoMs > repeatedWithinMs) return;
    }
    const nowWallMs = clock.wallMs();
    const times = {
      sinceMs: before?.condition.sinceMs ?? nowWallMs,
      lastSeenAtMs: nowWallMs,
      count: (before?.condition.count ?? 0) + 1,
    };
    const holder = seenNode(known);
    const condition = duplicateCondition(node, holder, refused, times);
    this.episodes.set(node, { key, condition, lastSeenMonoMs: clock.monotonicMs() });
    if (before?.key === key) return;
    this.run(node, (draft, nowMs) => {
      if (draft.node(node) === undefined) return;
      emitDuplicate(draft, node, { holder, refused }, nowMs);
      noteDuplicate(draft, node, condition, nowMs);
    });
  }

  /** Another boot says Hello while the earlier one still counts as connected: a fast reboot, or a second machine. */
  suspect(node: NodeName, refused: Seen): void {
    if (this.suspects.has(node)) return;
    this.suspects.set(node, { refused, sinceMonoMs: this.parts.clock.monotonicMs() });
  }

  /** A heartbeat of the welcomed agent: by it, a suspect is a second machine. */
  heard(node: NodeName): void {
    const suspect = this.suspects.get(node);
    if (suspect === undefined) return;
    if (this.parts.clock.monotonicMs() - suspect.sinceMonoMs >= heardAfterMs)
      this.refused(node, suspect.refused, false);
  }

  /** Another agent was welcomed: what was suspected before was its own earlier boot. */
  welcomed(node: NodeName): void {
    this.suspects.delete(node);
  }

  /** One pass: asks nodes with a suspect for a sign of life, and ends conditions of machines that are gone. */
  pass(): void {
    const nowMonoMs = this.parts.clock.monotonicMs();
    for (const [node, { sinceMonoMs }] of this.suspects)
      if (nowMonoMs - sinceMonoMs >= heardAfterMs) this.parts.agents.askForBeat(node);
    for (const [node, { lastSeenMonoMs }] of this.episodes)
      if (nowMonoMs - lastSeenMonoMs >= quietAfterMs) this.end(node);
  }

  /** Ends the condition of a node, as after `muster node rejoin`. */
  end(node: NodeName): void {
    this.suspects.delete(node);
    if (this.episodes.delete(node)) this.run(node, (draft, nowMs) => noteDuplicate(draft, node, null, nowMs));
  }

  private run(node: NodeName, command: Parameters<Loop['run']>[1]): void {
    this.parts.loop
      .run(coordinatorPart('identities'), command)
      .catch((error: unknown) =>
        this.parts.log.warn({ node, error: messageOf(error) }, 'a duplicate identity was not recorded'),
      );
  }
}

/** @param origin null: an agent of an earlier release */
export function seenAs(origin: MachineOrigin | null, bootId: string): Seen {
  return { hostName: origin?.hostName ?? null, address: origin?.peer ?? null, bootId };
}

function seenNode({ origin, bootId }: Node): Seen {
  return seenAs(origin, bootId);
}
