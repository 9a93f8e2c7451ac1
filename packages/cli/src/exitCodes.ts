/** What the exit status of `muster` tells a script. */
import type { ErrorCode } from '@muster/common/errors';

/** Part of the public contract: never renumbered. `exitCodeMeanings` says when each is returned. */
export const exitCodes = {
  ok: 0,
  jobFailed: 1,
  /** `doctor`, `store check` and `checkpoint verify`, which wait for no job, found what they look for. */
  problemFound: 1,
  usage: 2,
  refused: 3,
  notFound: 4,
  unreachable: 5,
  denied: 6,
  deadlineExceeded: 7,
  /** EX_SOFTWARE of sysexits.h. */
  bug: 70,
  /** 128 + SIGINT, as shells count. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The table that help and docs show. */
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: 'success',
  1: 'the job failed or was cancelled; or a check found a problem',
  2: 'usage: wrong flags, arguments or job spec; the same call fails again',
  3: 'refused: wrong state, a conflict, or no room',
  4: 'not found: no such job, node, attempt or checkpoint; or what was being read was removed',
  5: 'unreachable: no coordinator answers',
  6: 'denied: token missing or refused, or TLS identity not proven',
  7: 'deadline exceeded: the coordinator did not answer in time',
  70: 'a bug in Muster',
  130: 'interrupted; what was watched keeps running',
};

/** Lines for a help text, in the order of the numbers. */
export function exitCodesText(): string {
  return Object.entries(exitCodeMeanings)
    .map(([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`)
    .join('\n');
}

export const exitCodeOf: Readonly<Record<ErrorCode, ExitCode>> = {
  invalid: exitCodes.usage,
  not_found: exitCodes.notFound,
  already_exists: exitCodes.refused,
  failed_precondition: exitCodes.refused,
  resource_exhausted: exitCodes.refused,
  unauthenticated: exitCodes.denied,
  permission_denied: exitCodes.denied,
  unavailable: exitCodes.unreachable,
  deadline_exceeded: exitCodes.deadlineExceeded,
  internal: exitCodes.bug,
};
