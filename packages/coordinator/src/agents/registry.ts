/**
 * The connected agents. Nothing here is stored: after a coordinator restart every agent dials in again and says its
 * whole truth.
 */
import type { Clock } from '@muster/common/clock';
import { MusterError } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import { isOnline } from '../lifecycle/liveness.ts';
import { currentAttempt } from '../model.ts';
import type { Committed } from '../state.ts';
import type { AgentSession } from './session.ts';

export class AgentRegistry {
  private readonly sessions = new Map<NodeName, AgentSession>();
  /** Monotonic; kept after the connection is gone, to say for how long a node has been silent. */
  private readonly lastHeardMs = new Map<NodeName, number>();
  private readonly clock: Clock;
  private readonly heartbeatIntervalMs: number;

  constructor(clock: Clock, heartbeatIntervalMs: number) {
    this.clock = clock;
    this.heartbeatIntervalMs = heartbeatIntervalMs;
  }

  /**
   * A newer connection of the same agent takes over: the old stream may be dead without us knowing yet.
   * @throws {MusterError} `already_exists` when another machine answers under this name right now
   */
  admit(node: NodeName, instanceId: string, bootId: string): void {
    const present = this.sessions.get(node);
    if (present === undefined || present.instanceId === instanceId || !this.isOnline(node)) return;
    throw new MusterError(
      'already_exists',
      `a node named ${node} is connected already (boot id ${present.bootId}, yours ${bootId}): give this agent a name ` +
        'and a join token of its own',
    );
  }

  add(session: AgentSession): void {
    this.sessions.get(session.node)?.end();
    this.sessions.set(session.node, session);
    this.heard(session);
  }

  remove(session: AgentSession): boolean {
    if (this.sessions.get(session.node) !== session) return false;
    this.sessions.delete(session.node);
    return true;
  }

  heard(session: AgentSession): void {
    session.lastHeardMs = this.clock.monotonicMs();
    this.lastHeardMs.set(session.node, session.lastHeardMs);
  }

  isCurrent(session: AgentSession): boolean {
    return this.sessions.get(session.node) === session;
  }

  isOnline(node: NodeName): boolean {
    const session = this.sessions.get(node);
    return isOnline(session?.lastHeardMs ?? null, this.clock.monotonicMs(), this.heartbeatIntervalMs);
  }

  online(): ReadonlySet<NodeName> {
    return new Set([...this.sessions.keys()].filter((node) => this.isOnline(node)));
  }

  /** Sessions that have a connection and no heartbeat in time. */
  silent(): readonly AgentSession[] {
    return [...this.sessions.values()].filter((session) => !this.isOnline(session.node));
  }

  /** Milliseconds since a node was last heard; null when not since our start. */
  silentForMs(node: NodeName): number | null {
    const heardMs = this.lastHeardMs.get(node);
    return heardMs === undefined ? null : Math.max(0, Math.round(this.clock.monotonicMs() - heardMs));
  }

  /** Tells the agents concerned what a commit changed for them. */
  sync(committed: Committed): void {
    for (const job of committed.jobs) {
      const attempt = currentAttempt(job);
      if (attempt === null) {
        for (const session of this.sessions.values()) session.syncJob(job);
      } else {
        for (const node of new Set(attempt.tasks.map((task) => task.node)))
          this.sessions.get(node)?.syncJob(job);
      }
    }
  }

  endAll(): void {
    for (const session of this.sessions.values()) session.end();
    this.sessions.clear();
  }
}
