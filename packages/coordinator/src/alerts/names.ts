/**
 * The names that conditions and messages of alerts may use, by what a rule looks at. They are part of the API: a name never changes
 * its meaning. `docs/alerts.md` lists them, and a test compares it with this table.
 */
import type { AlertKind } from '@muster/common/alerts';

/** The types of CEL that conditions can have to do with. */
export type ValueType =
  | 'string'
  | 'bool'
  | 'int'
  | 'double'
  | 'duration'
  | 'list(string)'
  | 'map(string, string)';

export interface KnownName {
  readonly type: ValueType;
  /** One clause for people, in Markdown, with the unit. */
  readonly meaning: string;
}

type Names = Readonly<Record<string, KnownName>>;

const string = (meaning: string): KnownName => ({ type: 'string', meaning });
const bool = (meaning: string): KnownName => ({ type: 'bool', meaning });
const int = (meaning: string): KnownName => ({ type: 'int', meaning });
const double = (meaning: string): KnownName => ({ type: 'double', meaning });
const duration = (meaning: string): KnownName => ({ type: 'duration', meaning });

export const jobFactNames = {
  workload_id: string('id of the job'),
  workload_name: string('its name'),
  workload_state: string('`queued`, `starting`, `running`, `stopping`, `succeeded`, `failed` or `cancelled`'),
  user: string('who submitted it'),
  project: string('its project'),
  labels: { type: 'map(string, string)', meaning: 'its labels: `labels.team`, `"team" in labels`' },
  priority: int('its priority, 0 to 100'),
  preemptible: bool('whether it may be preempted'),
  gpus: int('GPUs that it asks for on all nodes'),
  nodes: int('nodes that it runs on, or asks for'),
  attempt: int('number of its newest attempt, 0 before the first'),
  failures: int('attempts that count against `retry.max_attempts`, since the last progress'),
  preemptions: int('how many times it was preempted'),
  cause: string('why it has failed, was cancelled, or waits for its next attempt, such as `cuda_oom`'),
  queued_for: duration('since it has been in the queue'),
  running_for: duration('since all tasks of its attempt run'),
  train_loss: double('newest loss in its output; not a number once the loss of the attempt was none'),
  eval_loss: double('newest evaluation loss'),
  learning_rate: double('newest learning rate'),
  grad_norm: double('newest norm of the gradients'),
  epoch: double('newest epoch'),
  step: double('newest step'),
  tokens_per_second: double('newest speed in tokens'),
  samples_per_second: double('newest speed in samples'),
  tokens: double('newest count of tokens since the beginning of the training'),
  progress_age: duration('since the last line of metrics in its output'),
  hung: bool('whether its attempt hangs'),
  diverged: bool('whether the loss of its attempt has diverged, or is not a number'),
  checkpoint_age: duration('since its last checkpoint, or since it runs if the attempt has saved none'),
  checkpoint_advice: duration(
    'how often a job of its length should save: 10 min if it is shorter than 1 h, 30 min up to 4 h, 1 h up to 24 h, else 2 h; ' +
      'the length is its `max_runtime`, or how long it has run',
  ),
  gpu_utilization: double('mean of its GPUs over the last interval, percent'),
  gpu_memory_used: double('most of any of its GPUs, MiB'),
  gpu_memory_used_percent: double('the same as a share of the memory of that GPU'),
  gpu_power: double('sum of its GPUs, watts'),
  gpu_temperature: double('highest of its GPUs, degrees Celsius'),
} as const satisfies Names;

export const nodeFactNames = {
  node: string('name of the node'),
  node_state: string('`online` or `silent`'),
  silent_for: duration('since its last contact, while it is silent'),
  drained: bool('whether it gets no new work by the wish of a user'),
  conditions: { type: 'list(string)', meaning: 'kinds of its conditions: `"disk_full" in conditions`' },
  critical_conditions: int('how many of them are critical'),
  gpus: int('its GPUs'),
  unhealthy_gpus: int('GPUs that get no new work because of a condition'),
  tasks: int('tasks on it that have not ended'),
  cpu_utilization: double('of all its CPUs, percent'),
  memory_used: double('MiB'),
  load1: double('load average of the last minute'),
  gpu_utilization: double('mean of its GPUs over the last interval, percent'),
  gpu_temperature: double('highest of its GPUs, degrees Celsius'),
} as const satisfies Names;

export const clusterFactNames = {
  queued_jobs: int('jobs in the queue'),
  running_jobs: int('jobs that run'),
  oldest_queued: duration('since the job that waits longest has been in the queue'),
  last_start: duration('since the last attempt of any job was allocated, or since the coordinator started'),
  nodes: int('nodes of the cluster'),
  silent_nodes: int('nodes that are silent'),
  gpus: int('GPUs of all nodes'),
  disk_free_percent: double('free space where the coordinator keeps its data'),
  certificate_expires_in: duration(
    'until the certificate of the coordinator, or the first of its agents, expires',
  ),
} as const satisfies Names;

export const namesOfKind: Readonly<Record<AlertKind, Names>> = {
  job: jobFactNames,
  node: nodeFactNames,
  cluster: clusterFactNames,
};

/** What messages may use besides: it is known of every rule. */
export const namesOfEvery = {
  alert: string('name of the alert'),
  severity: string('its severity'),
  subject: string('id of the job, name of the node, or `cluster`'),
} as const satisfies Names;

/** A value of a name: durations in milliseconds. null: unknown. */
export type FactValue =
  | string
  | boolean
  | number
  | readonly string[]
  | Readonly<Record<string, string>>
  | null;

/** What is known of one job, one node or the cluster, by name. */
export type FactOf = (name: string) => FactValue;
