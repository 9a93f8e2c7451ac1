/** MusterError ↔ gRPC status. */
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { type ErrorCode, MusterError, type SpecProblemView } from '../errors.ts';
import type { SpecProblems__Output } from '../gen/muster/v1/SpecProblems.ts';
import { decodeSpecProblems, encodeSpecProblems } from './service.ts';

const statusOf: Readonly<Record<ErrorCode, status>> = {
  invalid: status.INVALID_ARGUMENT,
  not_found: status.NOT_FOUND,
  already_exists: status.ALREADY_EXISTS,
  failed_precondition: status.FAILED_PRECONDITION,
  resource_exhausted: status.RESOURCE_EXHAUSTED,
  unauthenticated: status.UNAUTHENTICATED,
  permission_denied: status.PERMISSION_DENIED,
  unavailable: status.UNAVAILABLE,
  deadline_exceeded: status.DEADLINE_EXCEEDED,
  internal: status.INTERNAL,
};
const codeOf = new Map<status, ErrorCode>(
  (Object.entries(statusOf) as [ErrorCode, status][]).map(([code, grpcStatus]) => [grpcStatus, code]),
);

const problemsKey = 'muster-problems-bin';
/** Metadata is limited to 8 KB on common proxies; a spec with more problems than fit says so in its message. */
const problemBytesMax = 6_000;
/** The same limit holds for the message, which may quote what the client sent and is percent-encoded on its way. */
const detailCharactersMax = 1_000;

export function toServiceError(error: MusterError): Partial<ServiceError> {
  const metadata = new Metadata();
  if (error.problems.length > 0) {
    let problems = error.problems;
    let bytes = encodeProblems(problems);
    while (bytes.length > problemBytesMax) {
      problems = problems.slice(0, Math.floor(problems.length / 2));
      bytes = encodeProblems(problems);
    }
    metadata.set(problemsKey, bytes);
  }
  return { code: statusOf[error.code], details: shortened(error.message), metadata };
}

/** Half of a surrogate pair, cut off here or escaped in a client's JSON, would make the encoding of the status throw. */
function shortened(text: string): string {
  const short = text.length <= detailCharactersMax ? text : `${text.slice(0, detailCharactersMax)} …`;
  return short.toWellFormed();
}

function encodeProblems(problems: readonly SpecProblemView[]): Buffer {
  return encodeSpecProblems({
    problems: problems.map((problem) => ({
      ...problem,
      expected: problem.expected ?? '',
      suggestion: problem.suggestion ?? '',
    })),
  });
}

/** How grpc-js reports a stream that its server closed in an orderly way without sending a status. */
const endedWithoutStatus = /^Received RST_STREAM with code 0\b/;

/** The remote error in our words. Unknown statuses become `internal`. */
export function fromServiceError(error: ServiceError): MusterError {
  if (endsAtShutdown(error)) {
    return new MusterError('unavailable', 'the coordinator stopped during the call', { cause: error });
  }
  if (error.code === status.DEADLINE_EXCEEDED && error.details.startsWith('Deadline exceeded after')) {
    // What follows are the phases of the call inside of grpc-js.
    return new MusterError('deadline_exceeded', 'the coordinator did not answer in time', { cause: error });
  }
  const code = codeOf.get(error.code) ?? 'internal';
  const [bytes] = error.metadata?.get(problemsKey) ?? [];
  const decoded = Buffer.isBuffer(bytes) ? (decodeSpecProblems(bytes) as SpecProblems__Output) : null;
  const problems = (decoded?.problems ?? []).map((problem) => ({
    path: problem.path,
    message: problem.message,
    expected: problem.expected || null,
    suggestion: problem.suggestion || null,
  }));
  return new MusterError(code, error.details || error.message, { cause: error, problems });
}

/**
 * Calls that are open when a coordinator shuts down end as CANCELLED or without a status: both can be repeated against the
 * next coordinator. Our own cancellations never come here.
 */
function endsAtShutdown({ code, details }: ServiceError): boolean {
  return code === status.CANCELLED || (code === status.INTERNAL && endedWithoutStatus.test(details));
}
