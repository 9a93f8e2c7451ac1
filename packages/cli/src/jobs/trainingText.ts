/** Training, checkpoints and what GPU time was spent on, in a few words. Pure. */
import type { Checkpoint } from '@muster/common/checkpoints';
import type { TrainingProgress } from '@muster/common/training';
import type { JobView, LedgerEntry } from '@muster/common/views';
import { verdictText } from '../checkpoints/checkpointTable.ts';
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
