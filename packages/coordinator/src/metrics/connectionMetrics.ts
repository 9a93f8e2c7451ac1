/** Connections to the gRPC server, and those that it closed. */
import type { Registry } from 'prom-client';
import { type Connections, closeReasons } from '../rpc/connections.ts';
import { addCounter, addGauge } from './register.ts';

export type ConnectionCounts = Pick<Connections, 'closed' | 'openCount' | 'strangerCount'>;

export function addConnectionMetrics(registry: Registry, connections: ConnectionCounts): void {
  addGauge(registry, {
    name: 'muster_connections',
    help: 'Open gRPC connections: known are those on which a call has brought a valid token.',
    labelNames: ['kind'],
    read: () => [
      [{ kind: 'known' }, connections.openCount - connections.strangerCount],
      [{ kind: 'stranger' }, connections.strangerCount],
    ],
  });
  addCounter(registry, {
    name: 'muster_connections_closed_total',
    help: 'gRPC connections that the coordinator closed, by reason.',
    labelNames: ['reason'],
    read: () => closeReasons.map((reason) => [{ reason }, connections.closed[reason]]),
  });
}
