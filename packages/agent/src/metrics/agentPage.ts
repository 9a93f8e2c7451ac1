/** The agent on its own Prometheus page: whether it is healthy, connected, and sees its GPUs. */
import type { Condition } from '@muster/common/conditions';
import type { GpuDriver } from '@muster/common/hardware';
import type { GpuObservation } from '../gpus/gpuSource.ts';
import type { GpuReads } from './gpuReads.ts';
import { type Family, type Labels, type MetricSample, oneRow } from './textFormat.ts';

export interface AgentFigures {
  readonly version: string;
  /** Wall clock. */
  readonly startedAtMs: number;
  /** Of this process, user and system. */
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  /** By state; a state without tasks is there with 0, so that its series does not come and go. */
  readonly tasks: ReadonlyMap<string, number>;
  readonly connected: boolean;
  /** Since the coordinator last answered a heartbeat; null: it never has. */
  readonly heartbeatAgeSeconds: number | null;
  readonly gpuReads: GpuReads;
  readonly conditions: readonly Condition[];
}

const conditionsMax = 256;

export function agentFamilies(agent: AgentFigures, observation: GpuObservation): readonly Family[] {
  return [
    gauge('build_info', 'Version of the agent, always 1.', [one([['version', agent.version]])]),
    gauge(
      'connected',
      'Whether the agent is connected with its coordinator.',
      oneRow(Number(agent.connected)),
    ),
    gauge(
      'heartbeat_age_seconds',
      'Time since the coordinator last answered a heartbeat.',
      oneRow(agent.heartbeatAgeSeconds),
    ),
    gauge(
      'tasks',
      'Tasks on this node by state.',
      Array.from(agent.tasks, ([state, value]) => ({ labels: [['state', state]] as const, value })),
    ),
    gauge('gpu_source_info', 'Where GPU values come from, always 1.', sources(observation.gpuDriver)),
    gauge(
      'gpu_read_timestamp_seconds',
      'Time of the last reading of the GPUs, whose values this page shows.',
      oneRow(observation.atMs === 0 ? null : observation.atMs / 1000),
    ),
    ...agent.gpuReads.families(),
    gauge(
      'conditions',
      'Problems of this node, always 1.',
      agent.conditions.slice(0, conditionsMax).map(({ kind, gpuUuid, severity, action }) =>
        one([
          ['kind', kind],
          ['gpu', gpuUuid ?? ''],
          ['severity', severity],
          ['action', action],
        ]),
      ),
    ),
    // Names that every client library gives to these, so that common dashboards find them.
    {
      name: 'process_cpu_seconds_total',
      type: 'counter',
      help: 'CPU time of the agent, user and system.',
      rows: oneRow(agent.cpuSeconds),
    },
    {
      name: 'process_resident_memory_bytes',
      type: 'gauge',
      help: 'Memory of the agent.',
      rows: oneRow(agent.residentBytes),
    },
    {
      name: 'process_start_time_seconds',
      type: 'gauge',
      help: 'When the agent was started.',
      rows: oneRow(agent.startedAtMs / 1000),
    },
  ];
}

function sources({ source, profilingSource }: GpuDriver): readonly MetricSample[] {
  const used = (name: string, use: string): readonly MetricSample[] => [
    one([
      ['source', name],
      ['use', use],
    ]),
  ];
  return [
    ...used(source, 'samples'),
    ...(profilingSource === null ? [] : used(profilingSource, 'profiling')),
  ];
}

function gauge(name: string, help: string, rows: readonly MetricSample[]): Family {
  return { name: `muster_agent_${name}`, type: 'gauge', help, rows };
}

function one(labels: Labels): MetricSample {
  return { labels, value: 1 };
}
