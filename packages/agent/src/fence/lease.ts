import type { Lease } from '../taskFacts/execution.ts';

/** Whether a task with this lease may not run. A lease of an earlier boot has always expired: its task ended with that boot. */
export function isExpired(lease: Lease, bootId: string, boottimeMs: number): boolean {
  return lease.bootId !== bootId || lease.deadlineBoottimeMs <= boottimeMs;
}

/** The later of two leases. Messages may overtake each other, so an earlier deadline does not replace a later one. */
export function isLater(lease: Lease, than: Lease | null): boolean {
  return than === null || lease.deadlineBoottimeMs >= than.deadlineBoottimeMs;
}
