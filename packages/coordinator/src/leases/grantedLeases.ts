/** Records which node was granted which leases, and computes from when on a silent node is certainly fenced. */
import type { NodeName } from '@muster/common/ids';
import type { Attempt } from '../model.ts';
import { checkLeaseSettings, fencedAfterMs, type LeaseGrants, type LeaseSettings } from './leases.ts';

export interface GrantedLeasesParts {
  readonly settings: LeaseSettings;
  readonly monotonicMs: () => number;
  /** When the last question of a node was received, monotonic. null: none ever was, and none was expected. */
  readonly lastContactMs: (node: NodeName) => number | null;
  readonly maintenance: {
    leftMs(nowMs: number): number;
    readonly fencedSinceStartAtMs: number;
  };
}

export class GrantedLeases implements Pick<LeaseGrants, 'grant'> {
  private readonly parts: GrantedLeasesParts;
  private readonly startedAtMs: number;
  /**
   * T2 of the longer leases of a maintenance, by node. The latest counts, because a shorter lease that follows does not
   * revoke a longer one.
   */
  private readonly fencedAtByNode = new Map<NodeName, number>();
  /** The number of leases granted since the start, renewals included. */
  granted = 0;

  constructor(parts: GrantedLeasesParts) {
    checkLeaseSettings(parts.settings);
    this.parts = parts;
    this.startedAtMs = parts.monotonicMs();
  }

  grant(node: NodeName, { leaseMs }: Attempt): number {
    if (leaseMs === null) return 0;
    this.granted += 1;
    const { settings, maintenance } = this.parts;
    const leftMs = Math.ceil(maintenance.leftMs(this.parts.monotonicMs()));
    if (leftMs <= leaseMs) return leaseMs;
    const fencedAtMs = this.lastContactMs(node) + fencedAfterMs(settings, leftMs);
    this.fencedAtByNode.set(node, Math.max(fencedAtMs, this.fencedAtByNode.get(node) ?? 0));
    return leftMs;
  }

  /**
   * T2, monotonic: from then on no task of this attempt executes on the node, if the node stays silent.
   * @returns null: there is no such moment, and only proof that the node is dead ends its tasks
   */
  fencedAtMs(node: NodeName, { leaseMs }: Pick<Attempt, 'leaseMs'>): number | null {
    if (leaseMs === null) return null;
    const { settings, maintenance } = this.parts;
    const byOwnLeaseMs = this.lastContactMs(node) + fencedAfterMs(settings, leaseMs);
    const byMaintenanceMs = this.fencedAtByNode.get(node) ?? 0;
    return Math.max(byOwnLeaseMs, byMaintenanceMs, maintenance.fencedSinceStartAtMs);
  }

  /** An earlier coordinator may have answered the node until the moment at which this one started. */
  private lastContactMs(node: NodeName): number {
    return this.parts.lastContactMs(node) ?? this.startedAtMs;
  }
}
