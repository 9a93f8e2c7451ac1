/** Before something that runs is ended by a command whose plain purpose is another one. */
import type { Context } from './context.ts';
import { CliError } from './errors.ts';

export interface ForceFlag {
  readonly force?: boolean;
}

/**
 * Asks on a terminal; anywhere else, and for any answer but y, it is refused.
 * @param consequence one sentence without its full stop: what would end
 * @param command what to type to do it all the same
 * @throws {CliError} unless a person has said yes
 */
export async function requireConsent({ io }: Context, consequence: string, command: string): Promise<void> {
  if (io.stdin.isTerminal && io.stderr.isTerminal) {
    await io.stderr.write(`${consequence}. Continue? [y/N] `);
    const key = await new Promise<string>((resolve) => {
      const giveBack = io.stdin.onKeys((keys) => {
        giveBack();
        resolve(keys);
      });
    });
    const isYes = /^y/i.test(key);
    await io.stderr.write(isYes ? 'y\n' : 'n\n');
    if (isYes) return;
    throw new CliError('nothing was changed');
  }
  throw new CliError(consequence, { hints: [`To confirm: ${command}`] });
}
