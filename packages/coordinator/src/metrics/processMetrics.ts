/** What the process itself uses, under the names that every dashboard knows. */
import { performance } from 'node:perf_hooks';
import type { Registry } from 'prom-client';
import { addCounter, addGauge } from './register.ts';

/**
 * prom-client's own set is not used: `promtool check metrics` refuses some of its names.
 * @param startedAtMs wall clock
 */
export function addProcessMetrics(registry: Registry, startedAtMs: number): void {
  addCounter(registry, {
    name: 'process_cpu_seconds_total',
    help: 'Total user and system CPU time spent in seconds.',
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
  addCounter(registry, {
    name: 'nodejs_eventloop_active_seconds_total',
    help: 'Time that the event loop has been busy in seconds.',
    read: () => performance.eventLoopUtilization().active / 1_000,
  });
  addGauge(registry, {
    name: 'process_resident_memory_bytes',
    help: 'Resident memory size in bytes.',
    read: () => process.memoryUsage.rss(),
  });
  addGauge(registry, {
    name: 'nodejs_heap_size_used_bytes',
    help: 'Memory in use on the JavaScript heap in bytes.',
    read: () => process.memoryUsage().heapUsed,
  });
  addGauge(registry, {
    name: 'process_start_time_seconds',
    help: 'Start time of the process since unix epoch in seconds.',
    read: () => startedAtMs / 1_000,
  });
}
