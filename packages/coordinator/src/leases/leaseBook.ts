/** What was granted to whom, and from when on a silent node is fenced for certain. */
import type { NodeName } from '@muster/common/ids';
import type { Attempt } from '../model.ts';
import { checkLeaseSettings, fencedAfterMs, type LeaseGrants, type LeaseSettings } from './leases.ts';

export interface LeaseBookParts {
  readonly settings: LeaseSettings;
  readonly monotonicMs: () => number;
  /** When a node's last question was heard, monotonic. null: it never was, not even expected to be. */
  readonly lastHeardMs: (node: NodeName) => number | null;
  readonly maintenance: {
    leftMs(nowMs: number): number;
    readonly fencedSinceStartAtMs: number;
  };
}

export class LeaseBook implements Pick<LeaseGrants, 'grant'> {
  private readonly parts: LeaseBookParts;
  private readonly startedAtMs: number;
  /**
   * Of nodes that were granted more than their attempts' own leases. The latest of all such moments counts: a shorter
   * lease that follows does not take a longer one back.
   */
  private readonly fencedAtByNode = new Map<NodeName, number>();
  /** Leases granted since the start, renewals too. */
  granted = 0;

  constructor(parts: LeaseBookParts) {
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
    const fencedAtMs = this.lastHeardMs(node) + fencedAfterMs(settings, leftMs);
    this.fencedAtByNode.set(node, Math.max(fencedAtMs, this.fencedAtByNode.get(node) ?? 0));
    return leftMs;
  }

  /**
   * The moment T2, monotonic: should the node stay silent, no task of this attempt runs on it from then on.
   * @returns null: never; only proof of its death will do
   */
  fencedAtMs(node: NodeName, { leaseMs }: Pick<Attempt, 'leaseMs'>): number | null {
    if (leaseMs === null) return null;
    const { settings, maintenance } = this.parts;
    const byOwnLeaseMs = this.lastHeardMs(node) + fencedAfterMs(settings, leaseMs);
    const byMaintenanceMs = this.fencedAtByNode.get(node) ?? 0;
    return Math.max(byOwnLeaseMs, byMaintenanceMs, maintenance.fencedSinceStartAtMs);
  }

  /** A coordinator before us may have answered the node until the moment we started. */
  private lastHeardMs(node: NodeName): number {
    return this.parts.lastHeardMs(node) ?? this.startedAtMs;
  }
}
