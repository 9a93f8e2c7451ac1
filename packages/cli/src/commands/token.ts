import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { tokenCreate } from './tokenCreate.ts';
import { listTokens, tokenList } from './tokenList.ts';
import { tokenRevoke } from './tokenRevoke.ts';
import { tokenRotate } from './tokenRotate.ts';

export const command: CommandModule = {
  define(sub) {
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nWithout a subcommand it lists credentials and join tokens, without the secrets.',
    );
  },
  run: (context: Context, flags: ConnectionFlags & OutputFlags): Promise<ExitCode> =>
    listTokens(context, flags),
  subcommands: [tokenCreate, tokenList, tokenRevoke, tokenRotate],
};
