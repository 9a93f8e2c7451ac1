import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { withSession } from '../session.ts';

type StoreFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    const action = sub.createArgument('<action>', 'what to do').choices(['advance']);
    sub.addArgument(action);
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nAfter a restore from a backup, agents know of later terms and attempts than the store does, and nothing is started. ' +
        '`advance` goes on past all of them. Do it once every node is back: what one tells later has to be gone past again.',
    );
  },
  run: advanceStore,
};

async function advanceStore(context: Context, _advance: string, flags: StoreFlags): Promise<ExitCode> {
  const { io } = context;
  const cluster = await withSession(context, flags, ({ api }) => api.advanceStore());
  if (flags.output === 'json') {
    await writeJson(io.stdout, cluster);
    return exitCodes.ok;
  }
  const because = printable(cluster.pausedBecause);
  await io.stdout.write(
    because === ''
      ? 'The store was advanced; jobs are started again.\n'
      : `The store was advanced; nothing is started yet: ${because}.\n`,
  );
  return exitCodes.ok;
}
