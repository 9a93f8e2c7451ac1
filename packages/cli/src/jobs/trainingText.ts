/** Training, checkpoints and what GPU time was spent on, in a few words. Pure. */
import type { Checkpoint } from '@muster/common/checkpoints';
import type { TrainingProgress } from '@muster/common/training';
import type { JobView, LedgerEntry } from '@muster/common/views';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { agoText, bytesText, durationText, shortTimeText } from '../output/times.ts';

/**
 * `step 1200 of 5000, loss 2.31, eval loss 2.4, 812 tokens/s, 2 h 5 min to go`.
 * @param isOver the job has ended: nothing is left to go
 */
export function progressText(progress: TrainingProgress, { isOver = false } = {}): string {
  const { latest, totalSteps, etaMs } = progress;
  const { step, epoch } = latest;
  const number = (value: number) => String(Number(value.toPrecision(4)));
  const parts = [
    step === undefined ? null : `step ${step}${totalSteps === null ? '' : ` of ${totalSteps}`}`,
    epoch === undefined ? null : `epoch ${number(epoch)}`,
    latest.tokens === undefined ? null : `${latest.tokens} tokens`,
    latest.train_loss === undefined ? null : `loss ${number(latest.train_loss)}`,
    latest.eval_loss === undefined ? null : `eval loss ${number(latest.eval_loss)}`,
    latest.learning_rate === undefined ? null : `learning rate ${number(latest.learning_rate)}`,
    latest.tokens_per_second === undefined ? null : `${number(latest.tokens_per_second)} tokens/s`,
    latest.samples_per_second === undefined ? null : `${number(latest.samples_per_second)} samples/s`,
    latest.step_seconds === undefined ? null : `${shortTimeText(latest.step_seconds)}/step`,
    etaMs === null || isOver ? null : `${durationText(etaMs)} to go`,
  ];
  return parts.filter((part) => part !== null).join(', ');
}

/** `checkpoint-500 (step 500), 1.2 GiB, 3 min ago, verified`; null without one. */
export function newestCheckpointText({ checkpoints }: JobView, nowMs: number): string | null {
  const newest = checkpoints.at(-1);
  return newest === undefined ? null : checkpointText(newest, nowMs);
}

function checkpointText(checkpoint: Checkpoint, nowMs: number): string {
  const { name, step, bytes, savedAtMs } = checkpoint;
  const named = step === null ? name : `${name} (step ${step})`;
  return [named, bytesText(bytes), agoText(savedAtMs, nowMs), verdictText(checkpoint)].join(', ');
}

const ledgerWords: Readonly<Record<LedgerEntry['kind'], string>> = {
  productive: 'productive',
  queued: 'queued',
  starting: 'starting',
  preemption: 'lost (preemption)',
  rollback: 'lost (rollback)',
  hang: 'lost (hang)',
  failure: 'lost',
};

/** `3 h productive, 12 s starting, 4 min lost (node_lost)`, of GPU time; empty when there was none. */
export function ledgerText(ledger: readonly LedgerEntry[]): string {
  return ledger
    .filter(({ gpuSeconds }) => gpuSeconds >= 0.05)
    .map(({ kind, cause, gpuSeconds }) => {
      const word = ledgerWords[kind];
      return `${durationText(gpuSeconds * 1_000)} ${word}${kind === 'failure' ? ` (${cause ?? 'failure'})` : ''}`;
    })
    .join(', ');
}

/** Newest first. */
export function formatCheckpoints(checkpoints: readonly Checkpoint[], options: View): string {
  return formatTable(checkpoints.toReversed(), columnsOf(checkpoints, options.nowMs), options);
}

function columnsOf(checkpoints: readonly Checkpoint[], nowMs: number): readonly Column<Checkpoint>[] {
  const hasMetrics = checkpoints.some(({ metrics }) => Object.keys(metrics).length > 0);
  return [
    { header: 'STEP', cell: ({ step }) => (step === null ? '-' : String(step)), align: 'right' },
    { header: 'NAME', cell: ({ name }) => name, narrow: { cutTo: 16 } },
    { header: 'VERDICT', cell: verdictText, style: verdictStyle, narrow: { cutTo: 20 } },
    { header: 'SIZE', cell: ({ bytes }) => bytesText(bytes), align: 'right' },
    { header: 'SAVED', cell: ({ savedAtMs }) => agoText(savedAtMs, nowMs) },
    ...(hasMetrics
      ? [{ header: 'METRICS', cell: metricsText, narrow: { cutTo: 14, drop: true } } as const]
      : []),
    ...(checkpoints.some(({ evaluation }) => evaluation !== undefined)
      ? [{ header: 'EVALUATION', cell: evaluationText, narrow: { cutTo: 24 } } as const]
      : []),
    {
      header: 'TOOK',
      cell: ({ saveDurationMs }) => (saveDurationMs === null ? '' : durationText(saveDurationMs)),
      align: 'right',
      narrow: 'drop',
    },
    { header: 'ATTEMPT', cell: attemptText, align: 'right', narrow: 'drop' },
    {
      header: 'NODE',
      cell: ({ node, shared }) => (shared ? `${node} (shared)` : node),
      narrow: 'drop',
    },
  ];
}

/** `2`, or `found on disk` where nobody knows which attempt has saved it. */
function attemptText({ attempt, saverUnknown }: Checkpoint): string {
  return saverUnknown === true ? 'found on disk' : String(attempt);
}

/** `verified`, `verified, deep`, `verified, suspect`, `verified, after divergence`, `corrupt: …`. */
function verdictText({ verdict, depth, suspect, diverged, problem }: Checkpoint): string {
  const words = [
    verdict,
    depth === 'deep' ? 'deep' : null,
    suspect ? 'suspect' : null,
    diverged === true ? 'after divergence' : null,
  ];
  const text = words.filter((word) => word !== null).join(', ');
  return problem === null ? text : `${text}: ${problem}`;
}

function verdictStyle({ verdict, suspect, diverged }: Checkpoint): Style | null {
  if (verdict === 'corrupt') return 'red';
  if (verdict === 'gone') return 'dim';
  return verdict === 'unverified' || suspect || diverged === true ? 'yellow' : 'green';
}

/** `running (job_…)`, `eval_loss 2.281, best`, `failed: no_metric`. */
function evaluationText({ evaluation }: Checkpoint): string {
  if (evaluation === undefined) return '-';
  const { state, jobId, cause, best, metrics } = evaluation;
  if (state === 'failed') return `failed: ${cause ?? 'unknown'}`;
  if (state !== 'complete') return jobId === null ? state : `${state} (${jobId})`;
  return [metricsText({ metrics }) || 'no metrics', ...(best ? ['best'] : [])].join(', ');
}

function metricsText({ metrics }: Pick<Checkpoint, 'metrics'>): string {
  return Object.entries(metrics)
    .filter(([name]) => name !== 'step')
    .map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`)
    .join(', ');
}
