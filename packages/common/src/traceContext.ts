/**
 * The ids of traces. A job is in the trace that its submit named (https://www.w3.org/TR/trace-context/), or in one of its own
 * whose id follows from the id of the job. So an id needs to be stored only where somebody else has chosen it.
 */
import { hash } from 'node:crypto';

/** What a caller sends about the operation that makes a call. */
export interface TraceParent {
  /** 32 hexadecimal digits, not all 0. */
  readonly traceId: string;
  /** Of the operation: 16 hexadecimal digits, not all 0. */
  readonly spanId: string;
  /** The caller records its part of the trace. */
  readonly isSampled: boolean;
}

/** The header over HTTP, the key in metadata of gRPC. */
export const traceparentKey = 'traceparent';

const pattern = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** @returns null for text that is not a valid `traceparent`: the standard requires to continue as if there were none */
export function parseTraceparent(text: string): TraceParent | null {
  const [, version, traceId, spanId, flags, more] = pattern.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  // Later versions may append to the form of version 00; ff is never a version.
  if (version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The inverse of `parseTraceparent`, in version 00. */
export function traceparentText({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** @param traceparent what the submit of the job named, as `traceparentText` writes it; null or absent: nothing */
export function traceIdOf(jobId: string, traceparent: string | null | undefined): string {
  return traceparent?.slice(3, 35) ?? digest(`trace ${jobId}`).slice(0, 32);
}

/** Whether a trace is recorded that no caller has decided on. */
export type TraceSampler = (traceId: string) => boolean;

/** Whether the trace of a job is recorded: as the caller of its submit has decided, else by the sampler. */
export function isRecorded(
  jobId: string,
  traceparent: string | null | undefined,
  isSampled: TraceSampler,
): boolean {
  const caller = traceparent == null ? null : parseTraceparent(traceparent);
  return caller?.isSampled ?? isSampled(traceIdOf(jobId, null));
}

/** Of an attempt of a job: what its programs do belongs below that span. */
export function attemptSpanIdOf(jobId: string, attempt: number): string {
  return spanIdOf(jobId, `attempt ${attempt}`);
}

/** @param what distinguishes the spans of a job; empty: the job itself */
export function spanIdOf(jobId: string, what: string): string {
  return digest(`span ${jobId} ${what}`).slice(0, 16);
}

/** In hexadecimal digits. */
function digest(text: string): string {
  return hash('sha256', text);
}
