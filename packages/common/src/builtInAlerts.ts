/**
 * Alerts that are there without anybody setting them, each with a switch (`--builtin-alerts`). They are conditions like those of
 * users. `docs/alerts.md` lists them, and a test compares it with this table.
 */
import type { AlertKind, AlertSeverity } from './alerts.ts';

export interface BuiltInAlert {
  readonly kind: AlertKind;
  readonly severity: AlertSeverity;
  readonly condition: string;
  readonly forMs: number;
  readonly message: string;
}

const minuteMs = 60_000;

export const builtInAlerts = {
  job_failed: {
    kind: 'job',
    severity: 'critical',
    condition: "workload_state == 'failed'",
    forMs: 0,
    message: '{workload_name} ({workload_id}) has failed: {cause}',
  },
  gpu_idle: {
    kind: 'job',
    severity: 'warning',
    condition: "gpu_utilization < 1.0 && running_for > duration('10m')",
    forMs: 10 * minuteMs,
    message: 'the GPUs of {workload_name} ({workload_id}) are idle; it has run for {running_for}',
  },
  gpu_low: {
    kind: 'job',
    severity: 'info',
    condition: "gpu_utilization >= 1.0 && gpu_utilization < 80.0 && running_for > duration('10m')",
    forMs: 30 * minuteMs,
    message: '{workload_name} ({workload_id}) uses {gpu_utilization} % of its GPUs; 80 % and more are usual',
  },
  job_hung: {
    kind: 'job',
    severity: 'critical',
    condition: 'hung',
    forMs: 0,
    message: '{workload_name} ({workload_id}) makes no progress and its GPUs are idle',
  },
  job_diverged: {
    kind: 'job',
    severity: 'critical',
    condition: 'diverged || train_loss.isNaN()',
    forMs: 0,
    message: 'the loss of {workload_name} ({workload_id}) diverges: {train_loss} at step {step}',
  },
  checkpoint_overdue: {
    kind: 'job',
    severity: 'warning',
    condition: 'checkpoint_age > checkpoint_advice',
    forMs: 5 * minuteMs,
    message:
      '{workload_name} ({workload_id}) has saved nothing for {checkpoint_age}; a job of its length should save every {checkpoint_advice}',
  },
  gpu_unhealthy: {
    kind: 'node',
    severity: 'critical',
    condition: 'unhealthy_gpus > 0',
    forMs: 0,
    message: '{unhealthy_gpus} of {gpus} GPUs of {node} get no new work: {conditions}',
  },
  node_lost: {
    kind: 'node',
    severity: 'critical',
    condition: "node_state == 'silent'",
    forMs: minuteMs,
    message: '{node} has been silent for {silent_for}; {tasks} tasks were on it',
  },
  node_disk: {
    kind: 'node',
    severity: 'warning',
    condition:
      "'disk_full' in conditions || 'disk_read_only' in conditions || 'disk_unreachable' in conditions",
    forMs: 0,
    message: 'a file system of {node} is full or cannot be written: {conditions}',
  },
  coordinator_disk: {
    kind: 'cluster',
    severity: 'critical',
    condition: 'disk_free_percent < 10.0',
    forMs: minuteMs,
    message: '{disk_free_percent} % of the disk of the coordinator are free',
  },
  queue_stuck: {
    kind: 'cluster',
    severity: 'warning',
    condition:
      "queued_jobs > 0 && running_jobs == 0 && nodes > silent_nodes && oldest_queued > duration('30m') && last_start > duration('30m')",
    forMs: 0,
    message: '{queued_jobs} jobs wait and none runs; nothing has started for {last_start}',
  },
  certificate_expiring: {
    kind: 'cluster',
    severity: 'warning',
    condition: "certificate_expires_in < duration('48h')",
    forMs: 0,
    message: 'a certificate of the coordinator or of an agent expires in {certificate_expires_in}',
  },
} as const satisfies Readonly<Record<string, BuiltInAlert>>;

export type BuiltInAlertName = keyof typeof builtInAlerts;

export const builtInAlertNames = Object.keys(builtInAlerts) as readonly BuiltInAlertName[];

export function isBuiltInAlert(name: string): name is BuiltInAlertName {
  return Object.hasOwn(builtInAlerts, name);
}
