/** Leases, fences, and whether this coordinator trusts itself, for the Prometheus page. */
import { Counter, type Registry } from 'prom-client';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import type { TrustedClock } from '../clock/trustedClock.ts';
import { currentAttempt } from '../model.ts';
import type { LeaseKeeper } from '../reconcilers/leaseKeeper.ts';
import type { ClusterState } from '../state/state.ts';
import { addCounter, addGauge } from './register.ts';

export interface LeaseMetricParts {
  readonly state: ClusterState;
  readonly leases: LeaseKeeper;
  readonly clock: Pick<TrustedClock, 'view'>;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
}

/** @returns the counter of nodes that were fenced, incremented by the caller */
export function addLeaseMetrics(
  registry: Registry,
  { state, leases, clock, taskStatus }: LeaseMetricParts,
): Counter {
  addGauge(registry, {
    name: 'muster_nodes_suspect',
    help: 'Nodes that became silent together, so that the coordinator suspects itself; 0 if it does not.',
    read: () => leases.suspectNodes,
  });
  addGauge(registry, {
    name: 'muster_paused',
    help: '1 while nothing is started or rescheduled, because the coordinator may be partitioned or its store too old.',
    read: () => (leases.paused() === null ? 0 : 1),
  });
  addGauge(registry, {
    name: 'muster_clock_step_seconds',
    help: 'Seconds that the system clock is ahead of the trusted clock, negative if it is behind.',
    read: () => (clock.view().systemWallMs - clock.view().trustedWallMs) / 1_000,
  });
  addGauge(registry, {
    name: 'muster_clock_stepped',
    help: '1 while the system clock differs from the trusted clock and nothing confirms it: nothing is removed meanwhile.',
    read: () => (clock.view().steppedSinceMs === null ? 0 : 1),
  });
  addGauge(registry, {
    name: 'muster_term',
    help: 'Number of this run of the coordinator; it only grows.',
    read: () => leases.term,
  });
  addCounter(registry, {
    name: 'muster_lease_grants_total',
    help: 'Leases granted to tasks, renewals too, since the coordinator started.',
    read: () => leases.granted,
  });
  addGauge(registry, {
    name: 'muster_lease_frozen_tasks',
    help: 'Tasks that are frozen because their lease expired, by the last report of their nodes.',
    read: () => {
      let frozen = 0;
      for (const job of state.jobs.values())
        for (const { nodeRank } of currentAttempt(job)?.tasks ?? [])
          if (taskStatus.of({ jobId: job.id, attempt: job.lastAttempt, nodeRank }).frozen) frozen += 1;
      return frozen;
    },
  });
  addGauge(registry, {
    name: 'muster_lease_maintenance_seconds',
    help: 'Remaining time of the maintenance in which leases are longer, 0 if there is none.',
    read: () => leases.maintenanceMs() / 1_000,
  });
  return new Counter({
    name: 'muster_lease_fenced_nodes_total',
    help: 'Times that tasks of a silent node were ended because their leases had certainly expired.',
    registers: [registry],
  });
}
