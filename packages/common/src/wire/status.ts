/** MusterError ↔ the errors of the library for gRPC, with which the coordinator serves and agents call. */
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { MusterError, SpecProblemView } from '../errors.ts';
import { remoteError } from './remoteError.ts';
import { encodeSpecProblems } from './service.ts';
import { problemsKey, statusOfCode } from './statusCodes.ts';

/** Metadata is limited to 8 KB on common proxies. Where not all problems of a spec fit, the message has their number. */
const problemBytesMax = 6_000;
/** The same limit holds for the message, which may quote what the client sent and is percent-encoded for the wire. */
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
  return { code: statusOfCode[error.code], details: shortened(error.message), metadata };
}

/** Half of a surrogate pair, cut off here or escaped in a client's JSON, would make the encoding of the status throw. */
function shortened(text: string): string {
  const short = text.length <= detailCharactersMax ? text : `${text.slice(0, detailCharactersMax)} …`;
  return short.toWellFormed();
}

function encodeProblems(problems: readonly SpecProblemView[]): Buffer {
  return encodeSpecProblems({ problems });
}

/** How grpc-js reports a stream that its server closed in an orderly way without sending a status. */
const endedWithoutStatus = /^Received RST_STREAM with code 0\b/;

/** The remote error in our words. Unknown statuses become `internal`. */
export function fromServiceError(error: ServiceError): MusterError {
  const [problems] = error.metadata?.get(problemsKey) ?? [];
  const isCutOff = error.code === status.INTERNAL && endedWithoutStatus.test(error.details);
  return remoteError({
    status: isCutOff ? status.CANCELLED : error.code,
    message: error.details || error.message,
    problems: Buffer.isBuffer(problems) ? problems : null,
    cause: error,
  });
}
