/** The lease that a task's agent holds for it, which may end before the guard's: the agent's is the newer word. */
import { existsSync } from 'node:fs';
import { isLive } from '../fence/heldLease.ts';
import { leasePath, readLease } from '../fence/leaseFile.ts';

/** Whether the agent lets the task run. One that has noted nothing leaves it to the guard's own lease. */
export function agentLets(directory: string, bootId: string, nowBoottimeMs: number): boolean {
  return !existsSync(leasePath(directory)) || isLive(readLease(directory, bootId), nowBoottimeMs);
}
