/** What a user is told of a call that failed. */
import { MusterError } from '../errors.ts';
import { CallError, UnreachableError } from '../grpc/channel.ts';
import { connectionProblem } from './connectionProblem.ts';
import { remoteError } from './remoteError.ts';
import { problemsKey } from './statusCodes.ts';

/** An unreachable coordinator is the commonest failure of all; the words of sockets do not help. */
export function callProblem(error: unknown, address: string, encrypted: boolean): MusterError {
  if (error instanceof UnreachableError) {
    return (
      connectionProblem(address, `Failed to connect: ${error.message}`, encrypted) ??
      new MusterError('unavailable', `no coordinator answers at ${address}`, { cause: error })
    );
  }
  if (!(error instanceof CallError))
    return new MusterError('internal', `the call failed: ${String(error)}`, { cause: error });
  const { status, message, trailers } = error;
  const problems = trailers.get(problemsKey);
  return remoteError({
    status,
    message,
    cause: error,
    problems: problems === undefined ? null : Buffer.from(problems, 'base64'),
  });
}
