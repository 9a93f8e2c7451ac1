/** What the commands share that work on the store of a coordinator which does not run. */
import { resolve } from 'node:path';
import type { ReplacedStore } from '@muster/coordinator/store/sqlite/replacement';
import { lastDataDir } from './connection.ts';
import type { Context } from './context.ts';
import { CliError } from './errors.ts';
import { type ExitCode, exitCodes } from './exitCodes.ts';
import { writeJson } from './output/json.ts';
import type { QueryFlags } from './query.ts';

export function storeDirOf({ environment }: Context, { data }: QueryFlags): string {
  return resolve(environment.workingDir, data ?? environment.dataDir ?? lastDataDir(environment));
}

/**
 * The store's own errors are sentences for the user.
 * @param dataDir of the store that the work may write to, as root for a coordinator that is another user; null: of none
 */
export async function offline<T>(dataDir: string | null, work: () => Promise<T>): Promise<T> {
  try {
    try {
      return await work();
    } finally {
      if (dataDir !== null) await giveToOwner(dataDir);
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'StoreError')
      throw new CliError(error.message, { cause: error });
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof Error && isNoSpace(error)) throw noSpaceError(dataDir ?? 'the file', error);
    if (error instanceof Error && code !== undefined) throw new CliError(error.message, { cause: error });
    throw error;
  }
}

export function isNoSpace(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** @param place the file or directory that was written to */
export function noSpaceError(place: string, cause: unknown): CliError {
  return new CliError(`no space left on the disk of ${place}; nothing was changed`, {
    code: 'resource_exhausted',
    cause,
    hints: ['Free some space there, or use another disk, and run it again.'],
  });
}

async function giveToOwner(dataDir: string): Promise<void> {
  const { giveStoreToItsOwner } = await import('@muster/coordinator/store/sqlite/ownership');
  giveStoreToItsOwner(dataDir);
}

export async function printReplaced(
  { io }: Context,
  flags: QueryFlags,
  what: string,
  replaced: ReplacedStore,
): Promise<ExitCode> {
  if (flags.output === 'json') {
    await writeJson(io.stdout, replaced);
    return exitCodes.ok;
  }
  const { lastEventSeq, lostEvents, lostJobs, keptIn, restoredFiles } = replaced;
  const lost =
    lostEvents === null ? 'what is lost is not known' : `lost: ${lostJobs} jobs, ${lostEvents} events`;
  const files = restoredFiles.length === 0 ? '' : `Also from the backup: ${restoredFiles.join(', ')}.\n`;
  const kept = keptIn === null ? '' : `The files as they were are in ${keptIn}.\n`;
  await io.stdout.write(
    `${what}, up to event ${lastEventSeq}; ${lost}.\n${files}${kept}Start the coordinator. It starts jobs again once attempts ` +
      'that it does not know of no longer have leases.\n',
  );
  return exitCodes.ok;
}

/**
 * The form that a store has now, which a backup of an older release gives it back. It is changed by nothing here.
 * @returns its schema version; null: there is no store, or a coordinator may be changing it
 */
export async function schemaOfStore(dataDir: string): Promise<number | null> {
  const { inspectStore, storePaths } = await import('@muster/coordinator/store/sqlite/inspection');
  try {
    const found = inspectStore(storePaths(dataDir), { pagesMs: 0, monotonicMs: () => 0 });
    return found.kind === 'whole' && !found.witness.isOpen ? found.schema : null;
  } catch {
    return null;
  }
}
