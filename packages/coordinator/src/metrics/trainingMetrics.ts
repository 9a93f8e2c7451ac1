/** What became of GPU time, what is saved of it, and how training goes, for the Prometheus page. */
import { type CheckpointVerdict, checkpointVerdicts } from '@muster/common/checkpoints';
import { messageOf } from '@muster/common/errors';
import type { JobId, NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { isTerminal } from '@muster/common/states';
import type { NodeTelemetry } from '@muster/common/telemetry';
import type { TrainingMetricName } from '@muster/common/training';
import type { Cause, LedgerEntry } from '@muster/common/views';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { phasesView } from '../lifecycle/phasesView.ts';
import { isGood } from '../lifecycle/resume.ts';
import { type Attempt, currentAttempt, type Job } from '../model.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import { liveTraining } from '../views.ts';
import { addGauge, namedJobs } from './register.ts';

export interface TrainingMetricParts {
  readonly state: Pick<ClusterState, 'jobs'>;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  readonly store: Pick<Store, 'readJob'>;
  readonly log: Logger;
  /** The newest readings of a node. */
  readonly newestOf: (node: NodeName) => NodeTelemetry;
}

/** Counts since the coordinator started; what was booked before is in the jobs, and in what Prometheus has scraped. */
export class TrainingMetrics {
  private readonly parts: TrainingMetricParts;
  /** Of jobs that have not ended: what of their ledgers is counted. */
  private readonly counted = new Map<JobId, readonly LedgerEntry[]>();
  private readonly gpuSeconds: Counter<'kind' | 'cause'>;
  private readonly durations: Histogram;
  private readonly checkpoints: Counter<'verdict'>;
  private readonly checkpointSizes: Histogram;
  private readonly preemptions: Counter;
  private readonly recoveries: Counter<'cause'>;

  constructor(registry: Registry, parts: TrainingMetricParts) {
    this.parts = parts;
    const registers = [registry];
    for (const { id, ledger } of parts.state.jobs.values()) this.counted.set(id, ledger);
    this.gpuSeconds = new Counter({
      name: 'muster_gpu_seconds_total',
      help: 'GPU time of all jobs since the coordinator started, by use, booked when an attempt or a wait ends.',
      labelNames: ['kind', 'cause'],
      registers,
    });
    this.durations = new Histogram({
      name: 'training_duration_seconds',
      help: 'Time that all attempts of a job ran, of jobs that succeeded or failed.',
      buckets: [600, 3_600, 14_400, 86_400],
      registers,
    });
    this.checkpoints = new Counter({
      name: 'muster_checkpoints_total',
      help: 'Verdicts on checkpoints, in total.',
      labelNames: ['verdict'],
      registers,
    });
    this.checkpointSizes = new Histogram({
      name: 'checkpoint_size_mb',
      help: 'Sizes of checkpoints that were complete since the coordinator started, in millions of bytes.',
      buckets: [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
      registers,
    });
    for (const verdict of checkpointVerdicts) this.checkpoints.inc({ verdict }, 0);
    this.preemptions = new Counter({
      name: 'muster_preemptions_total',
      help: 'Preemptions of jobs, by another job or by a drain.',
      registers,
    });
    this.recoveries = new Counter({
      name: 'muster_recoveries_total',
      help: 'Times that a job was requeued after a failure, by its cause.',
      labelNames: ['cause'],
      registers,
    });
    addJobGauges(registry, parts);
  }

  /** Called for every commit. */
  committed({ events, jobs }: Pick<Committed, 'events' | 'jobs'>): void {
    for (const job of jobs) this.countJob(job);
    for (const { kind, data } of events) {
      if (kind.startsWith('checkpoint.')) this.countCheckpoint(data['verdict']);
      if (kind === 'checkpoint.saved' || kind === 'checkpoint.seen') this.observeSize(data['bytes']);
      if (kind === 'job.preempted') this.preemptions.inc();
      if (kind === 'job.queued') this.countReturn(data['cause'] as Cause | null | undefined);
    }
  }

  private countJob(job: Job): void {
    const before = this.counted.get(job.id) ?? [];
    for (const { kind, cause, gpuSeconds } of job.ledger) {
      const known = before.find((each) => each.kind === kind && each.cause === cause)?.gpuSeconds ?? 0;
      if (gpuSeconds > known) this.gpuSeconds.inc({ kind, cause: cause ?? '' }, gpuSeconds - known);
    }
    if (!isTerminal(job.state.kind)) {
      this.counted.set(job.id, job.ledger);
      return;
    }
    this.counted.delete(job.id);
    if (job.state.kind !== 'cancelled' && job.lastAttempt > 0) this.countDuration(job.id);
  }

  /** Only the store knows every attempt of a job. */
  private countDuration(jobId: JobId): void {
    const { store, log } = this.parts;
    store
      .readJob(jobId)
      .then((record) => this.durations.observe(runningSeconds(record?.attempts ?? [])))
      .catch((error: unknown) => log.warn({ jobId, error: messageOf(error) }, 'a duration was not counted'));
  }

  private countCheckpoint(reported: unknown): void {
    const verdict: CheckpointVerdict | undefined = checkpointVerdicts.find((each) => each === reported);
    if (verdict !== undefined) this.checkpoints.inc({ verdict });
  }

  private observeSize(bytes: unknown): void {
    if (typeof bytes === 'number') this.checkpointSizes.observe(bytes / 1e6);
  }

  private countReturn(cause: Cause | null | undefined): void {
    // It was preempted, or a user requested it: neither is a recovery from a failure.
    const isAsked = cause?.kind === 'preempted' || cause?.kind === 'cancelled';
    if (cause != null && !isAsked) this.recoveries.inc({ cause: cause.kind });
  }
}

function runningSeconds(attempts: readonly Attempt[]): number {
  return attempts.reduce((sum, { runningAtMs, endedAtMs }) => {
    if (runningAtMs === null || endedAtMs === null) return sum;
    return sum + Math.max(0, endedAtMs - runningAtMs) / 1_000;
  }, 0);
}

/** Under the names that dashboards of training programs use already, without our prefix. */
function addJobGauges(registry: Registry, { state, taskStatus, newestOf }: TrainingMetricParts): void {
  const addMetric = (name: string, help: string, metric: TrainingMetricName) =>
    addGauge(registry, {
      name,
      help,
      labelNames: ['muster_job'],
      read: () =>
        namedJobs(state).flatMap((job) => {
          const value = liveTraining(job, taskStatus)?.latest[metric];
          return value === undefined ? [] : [[{ muster_job: job.id }, value] as const];
        }),
    });
  addMetric('training_loss', 'Newest training loss in the output of a job.', 'train_loss');
  addMetric('learning_rate', 'Newest learning rate in the output of a job.', 'learning_rate');
  addPhaseGauges(registry, { state, taskStatus });
  addGauge(registry, {
    name: 'gpu_utilization',
    help: 'Utilization of the GPUs that a job holds, in percent: the mean of their newest readings.',
    labelNames: ['muster_job'],
    read: () => utilizationOfJobs(state, newestOf),
  });
  addGauge(registry, {
    name: 'muster_job_checkpoint_bytes',
    help: 'Size of the newest checkpoint of a job.',
    labelNames: ['muster_job'],
    read: () =>
      namedJobs(state).flatMap(({ id, checkpoints }) => {
        const newest = checkpoints.at(-1);
        return newest === undefined ? [] : [[{ muster_job: id }, newest.bytes] as const];
      }),
  });
  addGauge(registry, {
    name: 'muster_job_saved_timestamp_seconds',
    help: 'When the newest verified checkpoint of a job was saved, in seconds since 1970.',
    labelNames: ['muster_job'],
    read: () =>
      namedJobs(state).flatMap(({ id, checkpoints }) => {
        const newest = checkpoints.findLast(isGood);
        return newest === undefined ? [] : [[{ muster_job: id }, newest.savedAtMs / 1_000] as const];
      }),
  });
}

/** By the unit of each job, steps or tokens. A job has a series for its current phase only. */
function addPhaseGauges(
  registry: Registry,
  { state, taskStatus }: Pick<TrainingMetricParts, 'state' | 'taskStatus'>,
): void {
  const views = () =>
    namedJobs(state).flatMap((job) => {
      const view = phasesView(job, liveTraining(job, taskStatus));
      return view === null ? [] : [[job.id, view] as const];
    });
  addGauge(registry, {
    name: 'muster_job_phase_done_ratio',
    help: 'How much of its current phase a job has done, by the steps or tokens in its output, from 0 to 1.',
    labelNames: ['muster_job', 'phase', 'unit'],
    read: () =>
      views().flatMap(([id, { unit, index, phases, done }]) => {
        const current = phases[index];
        const [first] = phases;
        if (current === undefined || first === undefined) return [];
        const reached = (first.start + done - current.start) / current.target;
        return [[{ muster_job: id, phase: current.name, unit }, reached] as const];
      }),
  });
  addGauge(registry, {
    name: 'muster_job_phases_done_ratio',
    help: 'How much of all its phases a job has done, by the steps or tokens in its output, from 0 to 1.',
    labelNames: ['muster_job', 'unit'],
    read: () =>
      views().map(([id, { unit, done, total }]) => [{ muster_job: id, unit }, done / total] as const),
  });
}

/** Of jobs whose GPUs were read; each node is looked at once. */
function utilizationOfJobs(
  state: Pick<ClusterState, 'jobs'>,
  newestOf: TrainingMetricParts['newestOf'],
): readonly (readonly [{ readonly muster_job: JobId }, number])[] {
  const jobs = namedJobs(state);
  const nodes = new Set(jobs.flatMap((job) => currentAttempt(job)?.tasks.map(({ node }) => node) ?? []));
  const byJob = new Map<JobId, number[]>();
  for (const node of nodes) {
    for (const { task, utilization } of newestOf(node).gpus) {
      if (task === null || utilization === null) continue;
      const values = byJob.get(task.jobId);
      if (values === undefined) byJob.set(task.jobId, [utilization]);
      else values.push(utilization);
    }
  }
  return jobs.flatMap(({ id }) => {
    const values = byJob.get(id) ?? [];
    const sum = values.reduce((a, b) => a + b, 0);
    return values.length === 0 ? [] : [[{ muster_job: id }, sum / values.length] as const];
  });
}
