/** What is wrong with a job, with the evidence that was recorded and what to do about it. Pure. */
import { causeFacts } from '@muster/common/causeFacts';
import type { CauseKind } from '@muster/common/spec/causes';
import type { GpuReading, NodeTelemetry } from '@muster/common/telemetry';
import type { AttemptView, JobView } from '@muster/common/views';
import { brief } from './size.ts';
import { lastAttemptOf } from './workloads.ts';

export interface WorkloadFinding {
  readonly kind: string;
  /** null: of the job as a whole. */
  readonly attempt: number | null;
  readonly what: string;
  readonly evidence: string | null;
  readonly advice: readonly string[];
}

/** Beyond what is known of each cause: what has helped most. */
const moreAdvice: Readonly<Partial<Record<CauseKind, readonly string[]>>> = {
  cuda_oom: ['Use gradient checkpointing and mixed precision (bf16), or more GPUs with a sharded model.'],
  nan_loss: ['Clip gradients, and look at the data of the steps before.'],
  loss_divergence: ['Clip gradients.'],
  nccl_timeout: ['With InfiniBand set NCCL_IB_DISABLE=0, on Ethernet NCCL_IB_DISABLE=1.'],
  hung: ['Look at the network and raise the timeout of NCCL only if the work itself is slow.'],
};

const idleAdvice = [
  'The GPUs wait for data: use more workers (num_workers), faster storage, or preprocess the data once.',
];
const starvedAdvice = ['Prefetch batches (prefetch_factor, pin_memory), and use more workers.'];

/** Percent of the time that a GPU computes; below, something else is the bottleneck. */
const utilizationGoal = 80;
const utilizationLow = 50;
const utilizationIdle = 1;
/** Seconds of readings below which a mean says nothing. */
const observedSecondsMin = 60;

/** The most important ones first. @param readings of all nodes now; empty: it does not run */
export function workloadFindings(
  job: JobView,
  readings: readonly NodeTelemetry[],
): readonly WorkloadFinding[] {
  const attempts = [...job.attempts].sort((a, b) => b.number - a.number);
  return [
    ...attempts.flatMap(failureOf),
    ...attempts.flatMap(signsOf),
    ...hangOf(lastAttemptOf(job)),
    ...gpusNow(job, readings),
    ...gpusOf(lastAttemptOf(job)),
    ...waiting(job),
    ...badCheckpoints(job),
  ];
}

function failureOf({ number, cause }: AttemptView): readonly WorkloadFinding[] {
  if (cause === null || cause.kind === 'cancelled') return [];
  return [
    {
      kind: cause.kind,
      attempt: number,
      what: `Attempt ${number} failed: ${brief(cause.message)}`,
      evidence: brief(cause.evidence?.text ?? null),
      advice: adviceOn(cause.kind),
    },
  ];
}

function adviceOn(kind: CauseKind): readonly string[] {
  return [causeFacts[kind].advice, ...(moreAdvice[kind] ?? [])];
}

function signsOf({ number, signs }: AttemptView): readonly WorkloadFinding[] {
  return signs
    .filter(({ kind }) => kind !== 'resume_confirmed' && kind !== 'loss_spike')
    .map(({ kind, step, lastGoodStep }) => ({
      kind,
      attempt: number,
      what: `Attempt ${number}: ${kind.replaceAll('_', ' ')}${step === null ? '' : ` since step ${step}`}`,
      evidence: lastGoodStep === null ? null : `last normal step: ${lastGoodStep}`,
      advice:
        kind === 'nan_loss' || kind === 'loss_divergence' || kind === 'loss_scale_exhausted'
          ? adviceOn(kind)
          : ['Load the checkpoint that MUSTER_RESUME_FROM names (docs/checkpoints.md).'],
    }));
}

function hangOf(attempt: AttemptView | null): readonly WorkloadFinding[] {
  if (attempt?.hangs !== true) return [];
  return [
    {
      kind: 'hung',
      attempt: attempt.number,
      what: `Attempt ${attempt.number} hangs now: no output, step or checkpoint, and its GPUs compute nothing`,
      evidence: null,
      advice: adviceOn('hung'),
    },
  ];
}

function gpusNow(job: JobView, readings: readonly NodeTelemetry[]): readonly WorkloadFinding[] {
  const values = readings
    .flatMap(({ gpus }) => gpus)
    .filter(({ task }: GpuReading) => task?.jobId === job.id)
    .flatMap(({ utilization }) => utilization ?? []);
  if (values.length === 0) return [];
  const mean = values.reduce((sum, each) => sum + each, 0) / values.length;
  return starvation(mean, `its ${values.length} GPUs now`, lastAttemptOf(job)?.number ?? null);
}

function gpusOf(attempt: AttemptView | null): readonly WorkloadFinding[] {
  const usage = attempt?.gpuUsage ?? null;
  if (attempt === null || usage === null || usage.utilizationMean === null) return [];
  if (usage.observedGpuSeconds < observedSecondsMin * usage.gpus) return [];
  return starvation(usage.utilizationMean, `attempt ${attempt.number} on the mean`, attempt.number);
}

function starvation(mean: number, of: string, attempt: number | null): readonly WorkloadFinding[] {
  if (mean >= utilizationGoal) return [];
  const evidence = `GPU utilization of ${of}: ${Math.round(mean)} %, and it should be over ${utilizationGoal} %`;
  const kind = mean < utilizationIdle ? 'gpu_idle' : 'gpu_starved';
  const advice = [
    ...(mean < utilizationLow ? idleAdvice : []),
    ...(mean < utilizationIdle ? [] : starvedAdvice),
  ];
  return [{ kind, attempt, what: evidence, evidence, advice }];
}

function waiting({ pending }: JobView): readonly WorkloadFinding[] {
  if (pending === null) return [];
  const advice = pending.remedy === null ? [] : [brief(pending.remedy)];
  return [
    {
      kind: pending.kind,
      attempt: null,
      what: `It waits: ${brief(pending.message)}`,
      evidence: null,
      advice,
    },
  ];
}

function badCheckpoints({ checkpoints }: JobView): readonly WorkloadFinding[] {
  const bad = checkpoints.filter(({ verdict, suspect }) => verdict === 'corrupt' || suspect);
  const last = bad.at(-1);
  if (last === undefined) return [];
  return [
    {
      kind: 'corrupt_checkpoint',
      attempt: last.attempt,
      what: `${bad.length} of its checkpoints are corrupt or suspected, the newest is ${brief(last.name, 100)}`,
      evidence: brief(last.problem),
      advice: ['Requeue it from an earlier checkpoint: workload_requeue with fromStep.'],
    },
  ];
}
