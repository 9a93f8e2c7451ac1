import type { Lease } from '../drivers/driver.ts';

/** A task with this lease may not run (any more). One of an earlier boot never does: its task died with that boot. */
export function isExpired(lease: Lease, bootId: string, boottimeMs: number): boolean {
  return lease.bootId !== bootId || lease.deadlineBoottimeMs <= boottimeMs;
}

/** Messages may overtake each other: what was granted stays granted, and an earlier deadline takes nothing back. */
export function isLater(lease: Lease, than: Lease | null): boolean {
  return than === null || lease.deadlineBoottimeMs >= than.deadlineBoottimeMs;
}
