/** Codes of errors ↔ statuses of gRPC. */
import type { ErrorCode } from '../errors.ts';
import { grpcStatus } from '../grpc/status.ts';

export const statusOfCode: Readonly<Record<ErrorCode, number>> = {
  invalid: grpcStatus.invalidArgument,
  not_found: grpcStatus.notFound,
  already_exists: grpcStatus.alreadyExists,
  failed_precondition: grpcStatus.failedPrecondition,
  resource_exhausted: grpcStatus.resourceExhausted,
  unauthenticated: grpcStatus.unauthenticated,
  permission_denied: grpcStatus.permissionDenied,
  unavailable: grpcStatus.unavailable,
  deadline_exceeded: grpcStatus.deadlineExceeded,
  internal: grpcStatus.internal,
};

/** Header with the problems of a spec, encoded as SpecProblems. */
export const problemsKey = 'muster-problems-bin';
