/**
 * Every metric that can be asked for by name: what it is about, its unit, and where Prometheus has the same. One table for the
 * coordinator, the command line and the documentation.
 */
import { jobStates, nodeStates, terminalJobStates } from './states.ts';
import { type JobMetricName, jobMetrics } from './telemetry.ts';
import { type TrainingMetricName, trainingMetrics } from './training.ts';

/**
 * What a metric is about. `gpu`: the GPUs of jobs; `host`: nodes; `training`: what the output of jobs tells; `cluster`: queue and
 * cluster as a whole.
 */
export type MetricSubject = 'gpu' | 'host' | 'training' | 'cluster';

export interface NamedMetric {
  readonly name: string;
  readonly subject: MetricSubject;
  readonly unit: string;
  /** The series in Prometheus that it follows from; null: Prometheus has none with which the past could be told. */
  readonly prometheus: string | null;
  readonly what: string;
}

/** Of a node over 30 s. */
export const hostMetrics = {
  node_cpu_utilization: 'cpuUtilization',
  node_memory_used_mb: 'memoryUsedMb',
  node_load1: 'load1',
  network_receive_bytes_per_second: 'networkReceiveBytes',
  network_transmit_bytes_per_second: 'networkTransmitBytes',
} as const;
export type HostMetricName = keyof typeof hostMetrics;

const activeStates = jobStates.filter((state) => !terminalJobStates.some((terminal) => terminal === state));
const gpuStates = ['free', 'allocated', 'drained', 'silent'] as const;

/** In the order in which they are kept. */
export const clusterMetricNames: readonly string[] = [
  ...activeStates.map((state) => `jobs_${state}`),
  'queue_oldest_wait_seconds',
  ...gpuStates.map((state) => `gpus_${state}`),
  ...nodeStates.map((state) => `nodes_${state}`),
];

type About = Pick<NamedMetric, 'prometheus' | 'what'>;

const aboutGpus: Readonly<Record<JobMetricName, About>> = {
  gpu_utilization: about('DCGM_FI_DEV_GPU_UTIL', 'time in which the GPU computed anything'),
  gpu_memory_used_mb: about('DCGM_FI_DEV_FB_USED', 'memory in use, maximum of 10 s'),
  gpu_power_watts: about('DCGM_FI_DEV_POWER_USAGE', 'power draw'),
  gpu_energy_joules: about('DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION', 'energy consumed in 10 s, or in a step'),
  gpu_temperature: about('DCGM_FI_DEV_GPU_TEMP', 'temperature, maximum of 10 s'),
  sm_active: about('DCGM_FI_PROF_SM_ACTIVE', 'share of time in which SMs were active'),
  tensor_active: about('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE', 'share of time in which tensor cores were active'),
  dram_active: about('DCGM_FI_PROF_DRAM_ACTIVE', 'share of time in which memory was read or written'),
  nvlink_receive_bytes_per_second: about(
    'DCGM_FI_PROF_NVLINK_RX_BYTES',
    'received over all NVLinks of the GPU',
  ),
  nvlink_transmit_bytes_per_second: about('DCGM_FI_PROF_NVLINK_TX_BYTES', 'sent over all NVLinks of the GPU'),
};

const aboutHosts: Readonly<Record<HostMetricName, About & { readonly unit: string }>> = {
  node_cpu_utilization: {
    unit: 'percent',
    ...about('muster_host_cpu_seconds_total', 'use of all CPUs together'),
  },
  node_memory_used_mb: { unit: 'MiB', ...about('muster_host_memory_size_bytes', 'memory in use') },
  node_load1: { unit: 'load', ...about('muster_host_load1', 'load average of a minute') },
  network_receive_bytes_per_second: {
    unit: 'bytes/s',
    ...about(
      'muster_host_network_receive_bytes_total',
      'received over all network interfaces: the bandwidth between nodes',
    ),
  },
  network_transmit_bytes_per_second: {
    unit: 'bytes/s',
    ...about('muster_host_network_transmit_bytes_total', 'sent over all network interfaces'),
  },
};

const aboutTraining: Readonly<Record<TrainingMetricName, string>> = {
  train_loss: 'training loss',
  eval_loss: 'loss of an evaluation',
  learning_rate: 'learning rate',
  grad_norm: 'norm of the gradient',
  epoch: 'epoch',
  step: 'step',
  step_seconds: 'time of a step',
  tokens_per_second: 'speed in tokens',
  samples_per_second: 'speed in samples',
  tokens: 'tokens since the beginning of the training',
};

function about(prometheus: string, what: string): About {
  return { prometheus, what };
}

function clusterMetric(name: string): NamedMetric {
  const [subject = '', state = ''] = name.split('_');
  if (name === 'queue_oldest_wait_seconds') {
    const what = 'how long the job that has waited longest has been in the queue';
    return {
      name,
      subject: 'cluster',
      unit: 'seconds',
      prometheus: 'muster_queue_oldest_wait_seconds',
      what,
    };
  }
  const unit = subject === 'gpus' ? 'GPUs' : subject;
  const prometheus = `muster_${subject}{state="${state}"}`;
  return { name, subject: 'cluster', unit, prometheus, what: `${unit} that are ${state}` };
}

export const namedMetrics: ReadonlyMap<string, NamedMetric> = new Map(
  [
    ...Object.entries(jobMetrics).map(
      ([name, { unit }]): NamedMetric => ({
        name,
        subject: 'gpu',
        unit,
        ...aboutGpus[name as JobMetricName],
      }),
    ),
    ...Object.entries(aboutHosts).map(([name, rest]): NamedMetric => ({ name, subject: 'host', ...rest })),
    ...Object.entries(trainingMetrics).map(
      ([name, unit]): NamedMetric => ({
        name,
        subject: 'training',
        unit,
        prometheus: null,
        what: aboutTraining[name as TrainingMetricName],
      }),
    ),
    ...clusterMetricNames.map(clusterMetric),
  ].map((metric) => [metric.name, metric]),
);

/** What people call some of them elsewhere. */
export const metricAliases: Readonly<Record<string, string>> = {
  gpu_memory_used: 'gpu_memory_used_mb',
  gpu_util: 'gpu_utilization',
  gpu_power: 'gpu_power_watts',
  gpu_energy: 'gpu_energy_joules',
  gpu_temp: 'gpu_temperature',
  training_loss: 'train_loss',
  loss: 'train_loss',
  lr: 'learning_rate',
  queue_length: 'jobs_queued',
  cpu_utilization: 'node_cpu_utilization',
};

export function metricNamed(name: string): NamedMetric | null {
  const alias = Object.hasOwn(metricAliases, name) ? metricAliases[name] : undefined;
  return namedMetrics.get(alias ?? name) ?? null;
}
