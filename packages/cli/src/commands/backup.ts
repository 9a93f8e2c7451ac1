import { rmSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { syncDirectory } from '@muster/common/files';
import type { BackupAbout } from '@muster/coordinator/store/sqlite/backup';
import type { CommandModule, Context } from '../context.ts';
import { CliError, fileErrorReason } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { writeJson } from '../output/json.ts';
import { bytesText } from '../output/times.ts';
import { type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';
import { isNoSpace, noSpaceError, offline, storeDirOf } from '../storeFiles.ts';

interface BackupFlags extends QueryFlags {
  readonly withoutKeys?: true;
}

export const command: CommandModule = {
  define(sub) {
    sub.argument(
      '<file>',
      'file to write, mode 0600; one of that name is replaced once the new one is complete',
    );
    sub.option(
      '--without-keys',
      'only the store: a user with the role admin may take that, from any machine',
    );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nFrom the running coordinator, which is not held up; with --data also without one. In it:\n' +
        '  the store: jobs, events, nodes, users, hashes of tokens, encrypted secrets\n' +
        '  the CA, the keys of secrets, the admin token, and the file of settings of the coordinator\n' +
        'Not in it: output of jobs and the metrics that they printed (logs/, rows/), checkpoints, and files that the settings name.\n' +
        'Whoever can read it can act as the coordinator. The other half: muster restore FILE',
    );
  },
  run: runBackup,
};

async function runBackup(context: Context, file: string, flags: BackupFlags): Promise<ExitCode> {
  const path = resolve(context.environment.workingDir, file);
  const hasKeys = flags.withoutKeys !== true;
  const { bytes, about } = await writeBackup(path, async (take) => {
    try {
      await withSession(context, flags, async ({ api }) => take(api.backupStore({ hasKeys })));
    } catch (error) {
      if (flags.data === undefined || !isAway(error)) throw error;
      await takeOffline(storeDirOf(context, flags), { nowMs: context.clock.wallMs(), hasKeys }, take);
    }
  });
  if (flags.output === 'json') await writeJson(context.io.stdout, { file: path, bytes, ...about });
  else {
    const files = about.files.length === 0 ? 'no key files' : about.files.map(({ name }) => name).join(', ');
    await context.io.stdout.write(
      `${path} has the store of cluster ${about.clusterId} up to event ${about.lastEventSeq}, and ${files} ` +
        `(${bytesText(bytes)}); it was read back and is intact.\n`,
    );
  }
  return exitCodes.ok;
}

type Take = (pieces: AsyncIterable<Buffer>) => Promise<void>;

/** Under another name until all of it is on disk and was read back: what was there before stays until then. */
async function writeBackup(
  path: string,
  work: (take: Take) => Promise<void>,
): Promise<{ readonly bytes: number; readonly about: BackupAbout }> {
  const part = `${path}.part`;
  const file = await opened(part);
  let bytes = 0;
  try {
    await work(async (pieces) => {
      // A coordinator that died left a part of it.
      await file.truncate(0);
      bytes = 0;
      for await (const piece of pieces) {
        await writeAt(file, piece, bytes);
        bytes += piece.length;
      }
    });
    await file.sync();
    const about = await readBack(part);
    await rename(part, path);
    syncDirectory(dirname(path));
    return { bytes, about };
  } catch (error) {
    rmSync(part, { force: true });
    throw writeError(path, error);
  } finally {
    await file.close();
  }
}

async function opened(part: string): Promise<FileHandle> {
  try {
    rmSync(part, { force: true });
    return await open(part, 'wx', 0o600);
  } catch (error) {
    throw writeError(part, error);
  }
}

/** What the kernel said, as a sentence; anything else as it is. */
function writeError(path: string, error: unknown): unknown {
  if (isNoSpace(error)) return noSpaceError(path, error);
  const reason = fileErrorReason(error);
  return reason === null ? error : new CliError(`${path} cannot be written: ${reason}`, { cause: error });
}

async function writeAt(file: FileHandle, piece: Buffer, position: number): Promise<void> {
  let done = 0;
  while (done < piece.length)
    done += (await file.write(piece, done, piece.length - done, position + done)).bytesWritten;
}

async function readBack(path: string): Promise<BackupAbout> {
  const { openBackup } = await import('@muster/coordinator/store/sqlite/backup');
  return offline(null, async () => {
    const backup = openBackup(path);
    backup.close();
    return backup.about;
  });
}

function isAway(error: unknown): boolean {
  return (error instanceof MusterError && error.code === 'unavailable') || error instanceof CliError;
}

async function takeOffline(
  dataDir: string,
  { nowMs, hasKeys }: { readonly nowMs: number; readonly hasKeys: boolean },
  take: Take,
): Promise<void> {
  const { openExistingStore } = await import('@muster/coordinator/store/sqlite/checkStore');
  const { readAttached } = await import('@muster/coordinator/store/sqlite/attached');
  await offline(dataDir, async () => {
    const store = openExistingStore(dataDir);
    try {
      await take(store.backup(nowMs, () => (hasKeys ? readAttached(dataDir, null) : [])));
    } finally {
      await store.close();
    }
  });
}
