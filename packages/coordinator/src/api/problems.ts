/** Errors as problem details (RFC 9457): what went wrong, for programs and people. */
import type { ErrorCode, MusterError } from '@muster/common/errors';

export const problemType = 'application/problem+json; charset=utf-8';

const statusOf: Readonly<Record<ErrorCode, readonly [status: number, title: string]>> = {
  invalid: [400, 'The request is invalid'],
  unauthenticated: [401, 'No valid token'],
  permission_denied: [403, 'This token may not do this'],
  not_found: [404, 'There is no such thing'],
  already_exists: [409, 'It exists already'],
  failed_precondition: [409, 'Not in this state'],
  resource_exhausted: [429, 'A limit is reached'],
  internal: [500, 'The coordinator failed'],
  unavailable: [503, 'Try again later'],
  deadline_exceeded: [504, 'Not in time'],
};

export interface ProblemDetails {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** As in `-o json`. */
  readonly code: string;
  /** Of a refused job spec, and of refused parameters. */
  readonly problems: MusterError['problems'];
}

/** @param status where HTTP has a narrower one than the code */
export function problemOf(error: MusterError, status?: number): ProblemDetails {
  const [usual, title] = statusOf[error.code];
  const code = publicCode(error.code);
  return {
    type: `urn:muster:problem:${code}`,
    title,
    status: status ?? usual,
    detail: error.message.toWellFormed(),
    code,
    problems: error.problems,
  };
}

/** By the names of gRPC's status codes, as `-o json` has it. */
function publicCode(code: ErrorCode): string {
  return code === 'invalid' ? 'invalid_argument' : code;
}
