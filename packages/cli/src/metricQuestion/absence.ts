/** Why there are no values of a job. Pure. */
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import { nameOf, specOf } from '../jobs/summary.ts';
import { durationText } from '../output/times.ts';

export interface MissingRange {
  /** Milliseconds. */
  readonly since?: number;
  readonly attempt?: number;
}

export function noReadingsText(job: JobView, { since, attempt }: MissingRange, programName: string): string {
  const of = `No metrics of ${nameOf(job)}`;
  if (job.attempts.length === 0) return `${of}: it has not run yet.`;
  // Of a job in a brief list the newest attempt alone is known.
  if (attempt !== undefined && job.attempts.every(({ number }) => number < attempt)) {
    return `${of}: it has no attempt ${attempt}.`;
  }
  if (specOf(job).resources.gpus === 0 && job.training === null)
    return `${of}: it has no GPUs, and its output has no metrics.`;
  if (isTerminal(job.state)) {
    return `No metrics retained for ${nameOf(job)}; \`${programName} job ${job.id}\` shows what was recorded at its end.`;
  }
  return since === undefined ? `${of} yet.` : `${of} in the last ${durationText(since)}.`;
}
