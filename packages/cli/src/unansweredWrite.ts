/** A request that changes something and whose answer did not come: it may have been accepted all the same. */
import { MusterError } from '@muster/common/errors';
import type { Context } from './context.ts';
import { CliError } from './errors.ts';

/**
 * Does what `write` does, and says how to find out what became of it where its answer did not come.
 * @param lookUp the command, without the program's name, that shows whether the request was accepted
 * @throws {CliError} `deadline_exceeded`, with that command
 */
export async function explainingSilence<T>(
  lookUp: string,
  { environment }: Context,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof MusterError) || error.code !== 'deadline_exceeded') throw error;
    throw new CliError('the coordinator did not answer in time; the request may have been accepted', {
      code: error.code,
      hints: [`See whether it was: ${environment.programName} ${lookUp}`],
      cause: error,
    });
  }
}
