import { resolve } from 'node:path';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type QueryFlags, withQuery } from '../query.ts';
import { offline, printReplaced, storeDirOf } from '../storeFiles.ts';

interface RestoreFlags extends QueryFlags {
  readonly force?: true;
}

export const command: CommandModule = {
  define(sub) {
    sub.argument('<file>', 'backup that `muster backup` wrote');
    sub.option(
      '--force',
      'replace the store that is in --data; its files are kept in `replaced-…` beside it',
    );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nPuts a backup into the data directory of a coordinator that does not run. Where it is killed, the store that was there or\n' +
        'the restored one is complete. Key files that are missing there come from the backup; those of the same cluster stay, and\n' +
        'keys of secrets are added. The settings of the backup become restored-coordinator.yaml, for you to compare.\n' +
        'Jobs that were submitted after the backup are lost; their tasks keep running as orphans (`muster nodes`).',
    );
  },
  run: runRestore,
};

async function runRestore(context: Context, file: string, flags: RestoreFlags): Promise<ExitCode> {
  const path = resolve(context.environment.workingDir, file);
  const dataDir = storeDirOf(context, flags);
  const { restoreStore } = await import('@muster/coordinator/store/sqlite/restoreStore');
  const replaces = flags.force === true;
  const replaced = await offline(dataDir, () =>
    restoreStore(dataDir, path, context.clock.wallMs(), { replaces }),
  );
  return printReplaced(context, flags, `The store of ${dataDir} is now ${path}`, replaced);
}
