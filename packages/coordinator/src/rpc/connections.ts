/**
 * Keeps clients without a token from using up the connections of the coordinator. A connection is unauthenticated until one of its
 * calls has brought a valid token. Both the time and the number of unauthenticated connections are limited: when there are too many,
 * the oldest is closed for the newest, because a client that has a token sends it within milliseconds. Authenticated connections are
 * closed here only where one agent has more of them than any agent needs, the oldest first: those are the ones whose peer
 * disappeared without closing them.
 */
import type { Logger } from '@muster/common/log';

export interface ConnectionLimits {
  /** From the beginning of a connection to its first call with a valid token, milliseconds. */
  readonly firstCallMs: number;
  /** Connections without such a call, from one address. */
  readonly unauthenticatedPerAddressMax: number;
  /** Connections without such a call, altogether. */
  readonly unauthenticatedMax: number;
  /** Connections with the credential of one agent. */
  readonly agentMax: number;
  /** Connections of any kind: what the descriptors of the process allow, less what files need. */
  readonly connectionsMax: number;
}

/** @param descriptorsMax what the process may have open at once */
export function connectionLimits(descriptorsMax: number): ConnectionLimits {
  const connectionsMax = Math.max(16, Math.floor(descriptorsMax * 0.75));
  return {
    firstCallMs: 10_000,
    unauthenticatedPerAddressMax: Math.min(512, Math.ceil(connectionsMax / 4)),
    unauthenticatedMax: Math.min(2_048, Math.ceil(connectionsMax / 2)),
    // It has two, and dials again every second or so while broken ones are not found out, which takes a minute.
    agentMax: 128,
    connectionsMax,
  };
}

/** What is needed of a socket. */
export interface OpenConnection {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  destroy(): unknown;
  once(event: 'close', listener: () => void): unknown;
}

export interface ConnectionsParts {
  readonly limits: ConnectionLimits;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

/** Why connections were closed here. */
export const closeReasons = [
  'no_token_in_time',
  'too_many_unauthenticated',
  'too_many_connections',
  'too_many_of_one_agent',
] as const;
export type CloseReason = (typeof closeReasons)[number];

interface UnauthenticatedConnection {
  readonly connection: OpenConnection;
  readonly address: string;
  readonly sinceMs: number;
}

/** Before the address of a client of the HTTP API. */
export const httpPeer = 'http ';

/** Between two lines of the log about one reason. */
const logIntervalMs = 10_000;

export class Connections {
  /** Since the coordinator started, by reason. */
  readonly closed: Record<CloseReason, number> = {
    no_token_in_time: 0,
    too_many_unauthenticated: 0,
    too_many_connections: 0,
    too_many_of_one_agent: 0,
  };
  private readonly parts: ConnectionsParts;
  /** By `address:port`, in the order in which they came. */
  private readonly unauthenticated = new Map<string, UnauthenticatedConnection>();
  private readonly unauthenticatedOf = new Map<string, number>();
  /** By the credential of an agent: its connections, in the order in which they showed it. */
  private readonly ofAgents = new Map<string, Set<OpenConnection>>();
  private readonly unlogged = new Map<CloseReason, { count: number; address: string; loggedAtMs: number }>();
  private open = 0;

  constructor(parts: ConnectionsParts) {
    this.parts = parts;
  }

  get unauthenticatedCount(): number {
    return this.unauthenticated.size;
  }

  get openCount(): number {
    return this.open;
  }

  /**
   * To be called with each new connection before anything is read from it.
   * @param server that it came to: the same client may use one port of its own for both
   * @returns false: it was closed
   */
  opened(connection: OpenConnection, server: 'grpc' | 'http' = 'grpc'): boolean {
    const { limits } = this.parts;
    const address = connection.remoteAddress;
    // It has been closed by the other side already.
    if (address === undefined) return false;
    if (this.open >= limits.connectionsMax && !this.closeOldest('too_many_connections', null)) {
      connection.destroy();
      this.noteClosed('too_many_connections', address);
      return false;
    }
    if ((this.unauthenticatedOf.get(address) ?? 0) >= limits.unauthenticatedPerAddressMax)
      this.closeOldest('too_many_unauthenticated', address);
    if (this.unauthenticated.size >= limits.unauthenticatedMax)
      this.closeOldest('too_many_unauthenticated', null);

    const peer = `${server === 'http' ? httpPeer : ''}${peerOf(address, connection.remotePort)}`;
    this.open += 1;
    this.unauthenticated.set(peer, { connection, address, sinceMs: this.parts.monotonicMs() });
    this.unauthenticatedOf.set(address, (this.unauthenticatedOf.get(address) ?? 0) + 1);
    connection.once('close', () => {
      this.open -= 1;
      if (this.unauthenticated.get(peer)?.connection === connection) this.forget(peer);
    });
    return true;
  }

  /**
   * One of its calls has brought a valid token, or a delivery to a webhook was signed.
   * @param peer as gRPC names it, `address:port`; of HTTP with `httpPeer` before
   * @param agent id of the credential, where it is an agent's
   */
  authenticated(peer: string, agent: string | null = null): void {
    const pending = this.unauthenticated.get(peer);
    this.forget(peer);
    if (pending === undefined || agent === null) return;
    const { connection, address } = pending;
    const own = this.ofAgents.get(agent) ?? new Set<OpenConnection>();
    this.ofAgents.set(agent, own);
    own.add(connection);
    connection.once('close', () => {
      own.delete(connection);
      if (own.size === 0 && this.ofAgents.get(agent) === own) this.ofAgents.delete(agent);
    });
    const [oldest] = own;
    if (oldest === undefined || own.size <= this.parts.limits.agentMax) return;
    own.delete(oldest);
    this.noteClosed('too_many_of_one_agent', address);
    oldest.destroy();
  }

  /** Closes unauthenticated connections whose time is over, and logs what was closed. To be called about once a second. */
  sweep(): void {
    const { limits, monotonicMs } = this.parts;
    const nowMs = monotonicMs();
    for (const [peer, { sinceMs }] of this.unauthenticated) {
      if (nowMs - sinceMs < limits.firstCallMs) break;
      this.close(peer, 'no_token_in_time');
    }
    this.logClosed(nowMs);
  }

  /** @param address null: of any address. @returns false: there is none */
  private closeOldest(reason: CloseReason, address: string | null): boolean {
    for (const [peer, pending] of this.unauthenticated) {
      if (address !== null && pending.address !== address) continue;
      this.close(peer, reason);
      return true;
    }
    return false;
  }

  private close(peer: string, reason: CloseReason): void {
    const pending = this.unauthenticated.get(peer);
    if (pending === undefined) return;
    this.forget(peer);
    this.noteClosed(reason, pending.address);
    pending.connection.destroy();
  }

  private forget(peer: string): void {
    const pending = this.unauthenticated.get(peer);
    if (pending === undefined) return;
    this.unauthenticated.delete(peer);
    const left = (this.unauthenticatedOf.get(pending.address) ?? 1) - 1;
    if (left === 0) this.unauthenticatedOf.delete(pending.address);
    else this.unauthenticatedOf.set(pending.address, left);
  }

  private noteClosed(reason: CloseReason, address: string): void {
    this.closed[reason] += 1;
    const { count, loggedAtMs } = this.unlogged.get(reason) ?? {
      count: 0,
      loggedAtMs: Number.NEGATIVE_INFINITY,
    };
    this.unlogged.set(reason, { count: count + 1, address, loggedAtMs });
  }

  /** Clients without a token decide how many connections there are, but not how long the log gets. */
  private logClosed(nowMs: number): void {
    for (const [reason, { count, address, loggedAtMs }] of this.unlogged) {
      if (count === 0 || nowMs - loggedAtMs < logIntervalMs) continue;
      this.parts.log.warn({ reason, connections: count, address }, 'connections were closed');
      this.unlogged.set(reason, { count: 0, address, loggedAtMs: nowMs });
    }
  }
}

function peerOf(address: string, port: number | undefined): string {
  return `${address}:${port}`;
}
