/**
 * The coordinator's Prometheus page. Values are read when somebody asks; only what happens in between is counted. No
 * series is named by anything that grows without end: jobs appear while they hold a node, and at most a thousand.
 */

import { performance } from 'node:perf_hooks';
import type { Logger } from '@muster/common/log';
import { isTerminal, jobStates, nodeStates } from '@muster/common/states';
import { musterVersion } from '@muster/common/version';
import type { NodeView } from '@muster/common/views';
import { Counter, Histogram, Registry } from 'prom-client';
import type { AgentRegistry } from '../agents/registry.ts';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import type { Gate } from '../auth/gate.ts';
import { refusalKinds } from '../auth/refusals.ts';
import type { TrustedClock } from '../clock/trustedClock.ts';
import type { GpuPrice } from '../options.ts';
import type { WaitTimes } from '../planning/waitTimes.ts';
import type { LeaseKeeper } from '../reconcilers/leaseKeeper.ts';
import { type Connections, closeReasons } from '../rpc/connections.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import type { PageRequests } from '../telemetry/pageRequests.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import type { Contained } from '../work/contained.ts';
import { addAlertMetrics } from './alertMetrics.ts';
import { Costs } from './costs.ts';
import { countBy, countGpus, oldestWaitSeconds, shownNodes } from './counts.ts';
import { addLeaseMetrics } from './leaseMetrics.ts';
import { addCounter, addGauge, namedJobs, namedJobsMax } from './register.ts';
import { addTraceMetrics } from './traceMetrics.ts';
import { TrainingMetrics } from './trainingMetrics.ts';
import { addUpkeepMetrics, type UpkeepMetricParts } from './upkeepMetrics.ts';

/** Kinds of conditions come from agents' configuration. */
const conditionLabelsMax = 200;

export interface MetricsParts extends UpkeepMetricParts {
  readonly state: ClusterState;
  readonly clock: TrustedClock;
  readonly waitTimes: WaitTimes;
  readonly telemetry: TelemetryStore;
  readonly pages: PageRequests;
  readonly rowKeeping: { readonly rows: { readonly omittedValues: Readonly<Record<string, number>> } };
  readonly agents: AgentRegistry;
  readonly leases: LeaseKeeper;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  readonly store: Pick<Store, 'readJob'>;
  readonly contained: Pick<Contained, 'failures'>;
  readonly connections: ConnectionCounts;
  readonly gate: Pick<Gate, 'refusals'>;
  readonly log: Logger;
  /** What GPUs cost; empty: nothing is counted. */
  readonly prices: readonly GpuPrice[];
}

export class CoordinatorMetrics {
  private readonly registry = new Registry();
  private readonly events: Counter<'kind'>;
  private readonly queueWait: Histogram;
  private readonly commits: Histogram;
  private readonly violations: Counter<'id'>;
  private readonly fencedNodes: Counter;
  private readonly training: TrainingMetrics;
  private readonly costs: Costs;
  private readonly readNodes: () => void;
  /** A sink has taken a notification of an alert, or has not. */
  readonly delivered: ReturnType<typeof addAlertMetrics>;
  /** Spans were sent to the collector, or were not. */
  readonly spans: ReturnType<typeof addTraceMetrics>;
  private readonly readDisk: () => Promise<void>;

  constructor(parts: MetricsParts) {
    const registers = [this.registry];
    this.events = new Counter({
      name: 'muster_events_total',
      help: 'Events committed since the coordinator started, by kind.',
      labelNames: ['kind'],
      registers,
    });
    this.queueWait = new Histogram({
      name: 'muster_queue_wait_seconds',
      help: 'Time from the submission of a job to its first allocation.',
      buckets: [0.1, 1, 10, 60, 300, 1_800, 7_200, 28_800, 86_400],
      registers,
    });
    this.commits = new Histogram({
      name: 'muster_commit_seconds',
      help: 'Time that a commit to the store took.',
      buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2],
      registers,
    });
    this.violations = new Counter({
      name: 'muster_invariant_violations_total',
      help: 'Operations refused because a guarantee would have been broken, by its number in docs/guarantees.md. Each is a bug.',
      labelNames: ['id'],
      registers,
    });
    addGauge(this.registry, {
      name: 'muster_build_info',
      help: 'Constantly 1, with the version of the coordinator.',
      labelNames: ['version'],
      read: () => [[{ version: musterVersion }, 1]],
    });
    addCounter(this.registry, {
      name: 'muster_part_failures_total',
      help: 'Failures of periodic work and of parts that follow commits, by part; the others kept running. Each is a bug.',
      labelNames: ['part'],
      read: () => Array.from(parts.contained.failures, ([part, count]) => [{ part }, count]),
    });
    addCounter(this.registry, {
      name: 'muster_refused_calls_total',
      help: 'Calls that were refused before they had any effect, by reason.',
      labelNames: ['reason'],
      read: () => refusalKinds.map((reason) => [{ reason }, parts.gate.refusals.counts[reason]]),
    });
    addJobMetrics(this.registry, parts);
    this.readNodes = addNodeMetrics(this.registry, parts);
    addTelemetryMetrics(this.registry, parts);
    addRowMetrics(this.registry, parts);
    this.fencedNodes = addLeaseMetrics(this.registry, parts);
    addConnectionMetrics(this.registry, parts.connections);
    this.readDisk = addUpkeepMetrics(this.registry, parts);
    this.delivered = addAlertMetrics(this.registry, parts);
    this.spans = addTraceMetrics(this.registry);
    this.training = new TrainingMetrics(this.registry, {
      ...parts,
      newestOf: (node) => parts.telemetry.newest(node),
    });
    const { state, prices, clock } = parts;
    const costs = new Costs({ state, prices, monotonicMs: () => clock.monotonicMs() });
    this.costs = costs;
    if (prices.length > 0)
      addCounter(this.registry, {
        name: 'cost_usd',
        help: 'Cost of the GPUs that jobs have held since the coordinator started, by their project, at the configured prices.',
        labelNames: ['project'],
        read: () => Array.from(costs.byProject(), ([project, usd]) => [{ project }, usd]),
      });
    addProcessMetrics(this.registry, parts.clock.wallMs() - process.uptime() * 1_000);
  }

  /** The page in Prometheus' text format. */
  async page(): Promise<string> {
    this.readNodes();
    await this.readDisk();
    return this.registry.metrics();
  }

  /** Called for every commit. */
  committed(change: Pick<Committed, 'events' | 'jobs'>): void {
    const { events, jobs } = change;
    this.training.committed(change);
    this.costs.committed(jobs);
    for (const { kind, subject, data, timeMs } of events) {
      this.events.inc({ kind });
      if (kind === 'node.fenced') this.fencedNodes.inc();
      if (kind !== 'attempt.allocated' || data['attempt'] !== 1) continue;
      const job = jobs.find(({ id }) => id === subject);
      if (job !== undefined) this.queueWait.observe(Math.max(0, timeMs - job.submittedAtMs) / 1_000);
    }
  }

  /** An operation was refused that would have broken a guarantee. @param id its number on docs/guarantees.md, such as `G2` */
  violated(id: string): void {
    this.violations.inc({ id });
  }

  commitTook(ms: number): void {
    this.commits.observe(ms / 1_000);
  }
}

function addJobMetrics(registry: Registry, { state, clock, waitTimes }: MetricsParts): void {
  addGauge(registry, {
    name: 'muster_jobs',
    help: 'Jobs that have not ended, by state.',
    labelNames: ['state'],
    read: () => {
      const counts = countBy(state.jobs.values(), (job) => job.state.kind);
      const states = jobStates.filter((each) => !isTerminal(each));
      return states.map((each) => [{ state: each }, counts.get(each) ?? 0]);
    },
  });
  addGauge(registry, {
    name: 'muster_job_info',
    help: `Constantly 1 for each job that holds nodes, at most ${namedJobsMax} of them.`,
    labelNames: ['muster_job', 'name', 'project', 'attempt'],
    read: () =>
      namedJobs(state).map(({ id, spec: { name, project }, lastAttempt }) => [
        { muster_job: id, name, project, attempt: lastAttempt },
        1,
      ]),
  });
  addGauge(registry, {
    name: 'muster_queue_oldest_wait_seconds',
    help: 'How long the job that has waited longest has been in the queue, 0 when none is.',
    read: () => oldestWaitSeconds(state, waitTimes, clock.monotonicMs()),
  });
}

/** @returns looks at the nodes, once for all of their metrics; to be called before each page */
function addNodeMetrics(registry: Registry, parts: MetricsParts): () => void {
  let nodes: readonly NodeView[] = [];
  addGauge(registry, {
    name: 'muster_nodes',
    help: 'Nodes by state.',
    labelNames: ['state'],
    read: () => {
      const counts = countBy(nodes, (node) => node.state);
      return nodeStates.map((state) => [{ state }, counts.get(state) ?? 0]);
    },
  });
  addGauge(registry, {
    name: 'muster_gpus',
    help: 'GPUs by state; silent: free GPUs of silent nodes.',
    labelNames: ['state'],
    read: () => [...countGpus(nodes)].map(([state, count]) => [{ state }, count]),
  });
  addGauge(registry, {
    name: 'muster_conditions',
    help: 'Conditions of nodes and GPUs that hold now.',
    labelNames: ['kind', 'severity', 'action'],
    read: () => {
      const held = nodes.flatMap((node) => node.conditions);
      const byLabels = countBy(held, ({ kind, severity, action }) => `${kind} ${severity} ${action}`);
      return [...byLabels].slice(0, conditionLabelsMax).map(([labels, count]) => {
        const [kind = '', severity = '', action = ''] = labels.split(' ');
        return [{ kind, severity, action }, count];
      });
    },
  });
  return () => {
    nodes = shownNodes(parts);
  };
}

function addTelemetryMetrics(registry: Registry, { telemetry, pages }: MetricsParts): void {
  addCounter(registry, {
    name: 'muster_telemetry_readings_total',
    help: 'Readings of GPUs that were taken.',
    read: () => telemetry.taken,
  });
  addCounter(registry, {
    name: 'muster_telemetry_dropped_readings_total',
    help: 'Readings of GPUs that were not taken, by why.',
    labelNames: ['reason'],
    read: () => Object.entries(telemetry.dropped).map(([reason, count]) => [{ reason }, count]),
  });
  addCounter(registry, {
    name: 'muster_telemetry_evicted_readings_total',
    help: 'Readings of jobs that were dropped early because memory for them was used up.',
    read: () => telemetry.usage.evicted,
  });
  addGauge(registry, {
    name: 'muster_telemetry_streams',
    help: 'Agents that send telemetry.',
    read: () => pages.connected,
  });
  addGauge(registry, {
    name: 'muster_telemetry_series',
    help: 'Tasks, and GPUs of tasks, with readings.',
    read: () => telemetry.usage.series,
  });
  addGauge(registry, {
    name: 'muster_telemetry_bytes',
    help: 'Memory used by the readings of jobs.',
    read: () => telemetry.usage.bytes,
  });
  addGauge(registry, {
    name: 'muster_telemetry_budget_bytes',
    help: 'Memory limit of the readings of jobs.',
    read: () => telemetry.usage.bytesMax,
  });
}

function addRowMetrics(registry: Registry, { rowKeeping }: MetricsParts): void {
  addCounter(registry, {
    name: 'muster_training_omitted_values_total',
    help: 'Values of metrics in the output of jobs that are not kept, by why: they came too fast to be sent, or were thinned.',
    labelNames: ['reason'],
    read: () => Object.entries(rowKeeping.rows.omittedValues).map(([reason, count]) => [{ reason }, count]),
  });
}

/** Connections to the gRPC server, and those that it closed. */
type ConnectionCounts = Pick<Connections, 'closed' | 'openCount' | 'unauthenticatedCount'>;

function addConnectionMetrics(registry: Registry, connections: ConnectionCounts): void {
  addGauge(registry, {
    name: 'muster_connections',
    help: 'Open gRPC connections: known are those on which a call has brought a valid token.',
    labelNames: ['kind'],
    read: () => [
      [{ kind: 'authenticated' }, connections.openCount - connections.unauthenticatedCount],
      [{ kind: 'unauthenticated' }, connections.unauthenticatedCount],
    ],
  });
  addCounter(registry, {
    name: 'muster_connections_closed_total',
    help: 'gRPC connections that the coordinator closed, by reason.',
    labelNames: ['reason'],
    read: () => closeReasons.map((reason) => [{ reason }, connections.closed[reason]]),
  });
}

/**
 * prom-client's own set is not used: `promtool check metrics` refuses some of its names.
 * @param startedAtMs wall clock
 */
function addProcessMetrics(registry: Registry, startedAtMs: number): void {
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
