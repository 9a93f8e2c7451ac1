import {
  attemptSpanIdOf,
  isRecorded,
  type TraceSampler,
  traceIdOf,
  traceparentText,
} from '@muster/common/traceContext';
import type { Job } from '../model.ts';

/**
 * What the programs of an attempt get to know of the trace of their job.
 * @param isSampled null: this coordinator records no traces, and hands on what the caller of the submit has named
 * @returns null: there is nothing to hand on
 */
export function traceparentOfAttempt(
  { id, traceparent }: Pick<Job, 'id' | 'traceparent'>,
  attempt: number,
  isSampled: TraceSampler | null,
): string | null {
  if (isSampled === null) return traceparent;
  return traceparentText({
    traceId: traceIdOf(id, traceparent),
    spanId: attemptSpanIdOf(id, attempt),
    isSampled: isRecorded(id, traceparent, isSampled),
  });
}
