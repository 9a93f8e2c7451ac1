/** What a server answers instead of an answer, in our words. */
import { type ErrorCode, MusterError } from '../errors.ts';
import type { SpecProblems__Output } from '../gen/muster/v1/SpecProblems.ts';
import { grpcStatus } from '../grpc/status.ts';
import { decodeSpecProblems } from './service.ts';
import { statusOfCode } from './statusCodes.ts';

export interface RemoteStatus {
  readonly status: number;
  readonly message: string;
  /** Encoded. null: none were sent. */
  readonly problems: Buffer | null;
  readonly cause: Error;
}

const codeOf = new Map(Object.entries(statusOfCode).map(([code, status]) => [status, code as ErrorCode]));

/** Unknown statuses become `internal`. */
export function remoteError({ status, message, problems: encoded, cause }: RemoteStatus): MusterError {
  // Calls that are open when a coordinator stops are cancelled by it: all can be repeated against the next one. Our own
  // cancellations never come here.
  if (status === grpcStatus.cancelled)
    return new MusterError('unavailable', 'the coordinator stopped during the call', { cause });
  // What a library adds are the phases of the call inside of it.
  if (status === grpcStatus.deadlineExceeded && message.startsWith('Deadline exceeded'))
    return new MusterError('deadline_exceeded', 'the coordinator did not answer in time', { cause });
  const decoded = encoded === null ? null : (decodeSpecProblems(encoded) as SpecProblems__Output);
  const problems = (decoded?.problems ?? []).map((problem) => ({
    path: problem.path,
    message: problem.message,
    expected: problem.expected ?? null,
    suggestion: problem.suggestion ?? null,
  }));
  return new MusterError(codeOf.get(status) ?? 'internal', message, { cause, problems });
}
