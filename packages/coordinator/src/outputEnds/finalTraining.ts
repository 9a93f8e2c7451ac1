/**
 * The newest metrics of an attempt that has ended. The report of a task's end has them, and says whether its output was read to the end by
 * then. Where it was not, they are read from the rows once the last of them is here.
 */
import type { JobId } from '@muster/common/ids';
import type { TrainingMetricName, TrainingProgress } from '@muster/common/training';
import type { Attempt, Task } from '../model.ts';
import type { RowStore } from '../rows/rowStore.ts';
import type { OutputEnds } from './outputEnds.ts';
import { mayHavePrinted } from './sender.ts';
import { awaitedText, lossText } from './valueEnd.ts';

export interface FinalTrainingParts {
  readonly outputEnds: Pick<OutputEnds, 'rowSenders'>;
  readonly rows: Pick<RowStore, 'lookAt'>;
}

export type FinalTraining =
  /** More may arrive, as the reason says. */
  | { readonly kind: 'awaited'; readonly reason: string }
  /** `lost`: which of its metrics can no longer come. null: all are here */
  | { readonly kind: 'known'; readonly attempt: Attempt; readonly lost: string | null };

/** @param attempt that has ended @returns it with the final progress of each task */
export async function finalTraining(
  { outputEnds, rows }: FinalTrainingParts,
  jobId: JobId,
  attempt: Attempt,
): Promise<FinalTraining> {
  const isFinal = ({ exit }: Task) => exit?.rowsEnd !== undefined;
  if (!mayHavePrinted(attempt) || attempt.tasks.every(isFinal)) return { kind: 'known', attempt, lost: null };
  const senders = await outputEnds.rowSenders(jobId, attempt);
  let lost: string | null = null;
  const tasks: Task[] = [];
  for (const [rank, task] of attempt.tasks.entries()) {
    const state = senders[rank]?.state;
    if (isFinal(task) || task.exit === null || state === undefined) {
      tasks.push(task);
      continue;
    }
    const { number } = attempt;
    if (state.kind === 'awaited') {
      const reason = awaitedText('the last metrics', number, task.node, state.isSilent);
      return { kind: 'awaited', reason };
    }
    if (state.kind === 'lost') lost ??= lossText(state.why, 'metrics', number, task.node);
    const training = await newestOf(rows, jobId, number, task);
    tasks.push({ ...task, exit: { ...task.exit, training: training ?? task.exit.training } });
  }
  return { kind: 'known', attempt: { ...attempt, tasks }, lost };
}

/** @returns the newest value of each metric in the rows of a task. null: it has none */
async function newestOf(
  rows: Pick<RowStore, 'lookAt'>,
  jobId: JobId,
  attempt: number,
  { nodeRank, exit }: Task,
): Promise<TrainingProgress | null> {
  const latest: Partial<Record<TrainingMetricName, number>> = {};
  const notFinite = new Set<TrainingMetricName>();
  let count = 0;
  let atMs = 0;
  await rows.lookAt(jobId, ({ read }) =>
    read((frame) => {
      if (frame.attempt !== attempt || frame.nodeRank !== nodeRank) return;
      for (const row of frame.rows) {
        count += row.bucket?.rows ?? 1;
        ({ atMs } = row);
        for (const [name, value] of Object.entries(row.values) as [TrainingMetricName, number][]) {
          latest[name] = value;
          notFinite.delete(name);
        }
        const isLossLost = row.notFinite > 0 && row.values.train_loss === undefined;
        for (const name of [...(isLossLost ? (['train_loss'] as const) : []), ...(row.alsoNotFinite ?? [])]) {
          delete latest[name];
          notFinite.add(name);
        }
      }
    }),
  );
  if (count === 0) return null;
  const known = exit?.training ?? { framework: null, totalSteps: null, etaMs: null };
  const { framework, totalSteps, etaMs } = known;
  return { framework, totalSteps, etaMs, latest, notFinite: [...notFinite], rows: count, atMs };
}
