/**
 * The connected agents. Nothing here is stored: after a restart of the coordinator every agent connects again and reports
 * its full state.
 */

import type { Clock } from '@muster/common/clock';
import type { Condition } from '@muster/common/conditions';
import { MusterError } from '@muster/common/errors';
import type { NodeName, TaskRef } from '@muster/common/ids';
import { missedHeartbeatsMax } from '@muster/common/wire/protocol';
import type { Presented } from '../model.ts';
import type { Committed } from '../state/committed.ts';
import type { AgentSession } from './session.ts';

interface Presence {
  session: AgentSession | null;
  /** Monotonic; for a node without contact since our start, that start. */
  lastContactMs: number;
  hasContact: boolean;
  /** Set once its silence has been noticed and acted upon. */
  silence: Silence | null;
}

/** From the moment at which a node's silence was noticed until the next contact. */
export interface Silence {
  /** Another one for each silence of any node: proof of death in one is not proof in a later one. */
  readonly number: number;
  /** Monotonic. */
  readonly sinceMs: number;
  /** An administrator or a fencing command has confirmed that the node runs nothing any longer. */
  readonly isDead: boolean;
}

export class AgentRegistry {
  private readonly nodes = new Map<NodeName, Presence>();
  private readonly clock: Clock;
  /** How often agents ask for leases. */
  readonly heartbeatIntervalMs: number;
  private silences = 0;

  constructor(clock: Clock, heartbeatIntervalMs: number) {
    this.clock = clock;
    this.heartbeatIntervalMs = heartbeatIntervalMs;
  }

  /** A node of an earlier coordinator: it gets the usual time to connect before it counts as silent. */
  expect(node: NodeName): void {
    const lastContactMs = this.clock.monotonicMs();
    this.nodes.set(node, { session: null, lastContactMs, hasContact: false, silence: null });
  }

  /**
   * A newer connection of the same agent takes over: the old stream may be dead without us knowing yet. From here on the
   * node has been heard, so that its silence is not noticed while its return is being stored.
   * @throws {MusterError} as `refuseSecond`
   */
  admit(presented: Presented): void {
    this.refuseSecond(presented);
    const { name: node, instanceId } = presented;
    const present = this.nodes.get(node)?.session ?? null;
    if (present?.instanceId === instanceId) present.superseded = true;
    const lastContactMs = this.clock.monotonicMs();
    this.nodes.set(node, { session: present, lastContactMs, hasContact: true, silence: null });
  }

  /**
   * @throws {MusterError} `already_exists` when another machine answers under this name right now; `permission_denied`, after
   *   which an agent tries again, when it may be the same machine after a fast reboot
   */
  refuseSecond({ name: node, instanceId, bootId, origin }: Presented): void {
    const present = this.nodes.get(node)?.session ?? null;
    if (present === null || !this.isOnline(node)) return;
    if (present.instanceId !== instanceId) {
      throw new MusterError(
        'already_exists',
        `a node named ${node} is connected already (boot id ${present.bootId}, yours ${bootId}): give this agent a name ` +
          'and a join token of its own',
      );
    }
    // An agent of an earlier release is believed, as before.
    if (present.bootId === bootId || origin === null) return;
    throw new MusterError(
      'permission_denied',
      `${node} still answers from an earlier boot (boot id ${present.bootId}, yours ${bootId}): this machine is admitted once ` +
        'that is silent; if that is another machine, give this agent a name, a join token and a data directory of its own',
    );
  }

  add(session: AgentSession): void {
    this.nodes.get(session.node)?.session?.end();
    const lastContactMs = this.clock.monotonicMs();
    this.nodes.set(session.node, { session, lastContactMs, hasContact: true, silence: null });
  }

  /** It is not a node of this cluster, so its silence does not matter. */
  forget(node: NodeName): void {
    this.nodes.get(node)?.session?.end();
    this.nodes.delete(node);
  }

  /** @returns false when a newer connection had taken over already */
  remove(session: AgentSession): boolean {
    const presence = this.nodes.get(session.node);
    if (presence?.session !== session) return false;
    presence.session = null;
    return true;
  }

  contacted(session: AgentSession): void {
    const presence = this.nodes.get(session.node);
    if (presence?.session === session) presence.lastContactMs = this.clock.monotonicMs();
  }

  /** @returns whether this is the newest connection of its node; a Hello on another connection replaces it */
  isCurrent(session: AgentSession): boolean {
    return this.nodes.get(session.node)?.session === session && !session.superseded;
  }

  /** Its agent connects again, and reports its full state. */
  endSession(node: NodeName): void {
    this.nodes.get(node)?.session?.end();
  }

  /** Asks the agent, if it is connected, for a heartbeat now. */
  askForBeat(node: NodeName): void {
    this.nodes.get(node)?.session?.askForBeat();
  }

  /** Tells the agent, if it is connected, to kill tasks of which nothing is recorded. */
  kill(node: NodeName, tasks: readonly TaskRef[]): void {
    for (const task of tasks) this.nodes.get(node)?.session?.sync(task, undefined);
  }

  /** @returns false when the node does not answer: only its agent can report that a condition is over */
  clearCondition(node: NodeName, condition: Pick<Condition, 'kind' | 'gpuUuid'>): boolean {
    if (!this.isOnline(node)) return false;
    this.nodes.get(node)?.session?.clearCondition(condition);
    return true;
  }

  /** Those that are connected. */
  *sessions(): Iterable<AgentSession> {
    for (const { session } of this.nodes.values()) if (session !== null && !session.superseded) yield session;
  }

  /** Connected, and in contact lately: may get new work. */
  isOnline(node: NodeName): boolean {
    const presence = this.nodes.get(node);
    const lastContactMs = presence === undefined || presence.session === null ? null : presence.lastContactMs;
    return isOnline(lastContactMs, this.clock.monotonicMs(), this.heartbeatIntervalMs);
  }

  online(): ReadonlySet<NodeName> {
    return new Set([...this.nodes.keys()].filter((node) => this.isOnline(node)));
  }

  /**
   * Nodes that have become silent since the last call, with or without a connection; each is returned once per silence.
   * Their connections are ended.
   */
  takeNewlySilent(): readonly NodeName[] {
    const nowMs = this.clock.monotonicMs();
    const fallen = [...this.nodes].filter(
      ([, presence]) =>
        presence.silence === null && !isOnline(presence.lastContactMs, nowMs, this.heartbeatIntervalMs),
    );
    for (const [, presence] of fallen) {
      this.silences += 1;
      presence.silence = { number: this.silences, sinceMs: nowMs, isDead: false };
      // From here on nothing that still trickles in on it is answered, so that no lease is renewed unseen.
      presence.session?.end();
      presence.session = null;
    }
    return fallen.map(([node]) => node);
  }

  /**
   * Its silence was noticed, or it is not a node of this cluster. Unlike `isOnline`, this gives a node time to connect again
   * after its own restart and after ours.
   */
  isSilent(node: NodeName): boolean {
    const presence = this.nodes.get(node);
    return presence === undefined || presence.silence !== null;
  }

  /** null: it responds, or its silence has not been noticed yet. */
  silenceOf(node: NodeName): Silence | null {
    return this.nodes.get(node)?.silence ?? null;
  }

  /** Nothing runs on this silent node any longer. @param number of the silence in which that was found out */
  noteDead(node: NodeName, number: number): void {
    const presence = this.nodes.get(node);
    if (presence?.silence?.number === number) presence.silence = { ...presence.silence, isDead: true };
  }

  /** Monotonic: the last contact with a node; without contact since our start, that start. null: unknown node. */
  lastContactMs(node: NodeName): number | null {
    return this.nodes.get(node)?.lastContactMs ?? null;
  }

  /** The nodes with contact since our start. */
  *contactedNodes(): Iterable<NodeName> {
    for (const [node, presence] of this.nodes) if (presence.hasContact) yield node;
  }

  /** This process itself did not run for this time and received nothing: that is no silence of a node. */
  forgive(ms: number): void {
    const nowMs = this.clock.monotonicMs();
    for (const presence of this.nodes.values())
      presence.lastContactMs = Math.min(nowMs, presence.lastContactMs + ms);
  }

  /** Milliseconds since the last contact with a node; null: none since our start. */
  silentForMs(node: NodeName): number | null {
    const presence = this.nodes.get(node);
    if (presence === undefined || !presence.hasContact) return null;
    return Math.max(0, Math.round(this.clock.monotonicMs() - presence.lastContactMs));
  }

  /** Tells the agents concerned what a commit changed for them, and forgets those that were removed. */
  committed(committed: Committed): void {
    for (const node of committed.removedNodes) this.forget(node);
    const jobs = new Map(committed.jobs.map((job) => [job.id, job]));
    for (const { jobId, attempt } of committed.attempts) {
      for (const { node, nodeRank } of attempt.tasks) {
        const ref = { jobId, attempt: attempt.number, nodeRank };
        this.nodes.get(node)?.session?.syncChanged(ref, jobs.get(jobId));
      }
    }
  }

  endAll(): void {
    for (const presence of this.nodes.values()) {
      presence.session?.end();
      presence.session = null;
    }
  }
}

/**
 * Whether a node answers, by the time of its last message.
 * @param lastContactMs monotonic; null when the node has no connection
 * @param nowMs monotonic
 */
export function isOnline(lastContactMs: number | null, nowMs: number, heartbeatIntervalMs: number): boolean {
  return lastContactMs !== null && nowMs - lastContactMs <= missedHeartbeatsMax * heartbeatIntervalMs;
}
