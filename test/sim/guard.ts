/**
 * A machine's guard: it takes requests about processes and holds the second fence, the real one, over everything that
 * runs on the machine. What it knows of leases is on disk and outlives it.
 */

import type { TaskLaunch } from '@muster/agent/drivers/driver';
import { isExpired } from '@muster/agent/fence/leaseFile';
import { Fences } from '@muster/agent/guard/fences';
import type { LeaseFiles, LeaseRecord } from '@muster/agent/guard/leaseFiles';
import { LeaseExpired } from '@muster/agent/taskFacts/errors';
import type { Lease, TaskLocation } from '@muster/agent/taskFacts/execution';
import type { Logger } from '@muster/common/log';
import type { Machine } from './machine.ts';
import { Service } from './service.ts';

/** What comes too late does not begin. @throws {LeaseExpired} */
export function requireLease(key: string, lease: Lease, { bootId, clock }: Machine): void {
  if (isExpired(lease, bootId, clock.boottimeMs()))
    throw new LeaseExpired(`the lease of task ${key} had run out before it was started`);
}

export class Guard extends Service {
  private readonly records = new Map<string, LeaseRecord>();
  private readonly log: Logger;
  private held: Fences | null = null;

  constructor(machine: Machine, log: Logger) {
    super(machine, 'guard', () => this.takeOver());
    this.log = log;
  }

  private takeOver(): void {
    const { machine, records, log } = this;
    const files: Pick<LeaseFiles, keyof LeaseFiles> = {
      write: (record) => void records.set(record.location.key, record),
      remove: (key) => void records.delete(key),
      all: () => [...records.values()],
    };
    this.held = new Fences({
      files: files as LeaseFiles,
      bootId: machine.bootId,
      boottimeMs: machine.clock.boottimeMs,
      log,
      ownTask: (key) => {
        const process = machine.processes.get(key);
        return process?.isRunning === true ? process : null;
      },
    });
    this.held.takeOver();
  }

  private get fences(): Fences {
    if (this.held === null || !this.process.alive) throw new Error('there is no guard to hold a fence');
    return this.held;
  }

  /**
   * Right before the first instruction: what comes too late does not begin, and what begins is fenced.
   * @throws {LeaseExpired}
   */
  admit({ key, directory, lease }: TaskLaunch): void {
    const { fences, machine } = this;
    if (lease === null) return;
    requireLease(key, lease, machine);
    this.inItsTurn(() => fences.armNew({ key, directory }, lease));
  }

  renew(task: TaskLocation, lease: Lease | null): void {
    this.inItsTurn(() => this.fences.renew(task, lease, []));
  }

  /** Nothing is left of the task. Without a guard there is nothing to forget. */
  forget(key: string): void {
    if (this.process.alive) this.inItsTurn(() => this.fences.forget(key));
  }

  mayRun(key: string): boolean {
    return this.process.alive && this.fences.mayRun(key);
  }

  /** Its timers are its own whatever sets them, and end with it. */
  private inItsTurn(act: () => void): void {
    const { timeline } = this.machine;
    const before = timeline.current;
    timeline.current = this.process;
    try {
      act();
    } finally {
      timeline.current = before;
    }
  }
}
