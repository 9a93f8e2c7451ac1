import { rmSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { syncDirectory } from '@muster/common/files';
import type { StoreReport } from '@muster/coordinator/store/sqlite/checkStore';
import type { ReplacedStore } from '@muster/coordinator/store/sqlite/restoreStore';
import { lastDataDir } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { orphansText } from '../nodes/nodeText.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { bytesText } from '../output/times.ts';
import { type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

type Action = (context: Context, file: string | undefined, flags: QueryFlags) => Promise<ExitCode>;

const actions: Readonly<Record<string, Action>> = {
  check: checkStore,
  backup: backupStore,
  restore: restoreStore,
  accept: acceptStore,
  advance: advanceStore,
};

export const command: CommandModule = {
  define(sub) {
    sub.addArgument(sub.createArgument('<action>', 'action').choices(Object.keys(actions)));
    sub.argument('[file]', 'backup file, for `backup` and `restore`');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\ncheck    reads the entire store of --data and compares it with its checksums; stop the coordinator first\n' +
        'backup   writes a copy of the store to FILE, from the running coordinator; with --data also without one\n' +
        'restore  replaces the store of --data by a backup, and keeps the old files\n' +
        'accept   continues with a damaged store of --data, with the losses that `check` reports\n' +
        'advance  after a restore: continues with higher attempt numbers than any agent knows; run it once every node is back\n' +
        '\nExit code 1 of `check`: the store is damaged.',
    );
  },
  run: (context: Context, action: string, file: string | undefined, flags: QueryFlags) =>
    (actions[action] as Action)(context, file, flags),
};

async function checkStore(context: Context, file: string | undefined, flags: QueryFlags): Promise<ExitCode> {
  refuseFile(file);
  const dataDir = dataDirOf(context, flags);
  const { checkStore: check } = await import('@muster/coordinator/store/sqlite/checkStore');
  const report = await offline(dataDir, () => check(dataDir));
  const exitCode = report.findings.length === 0 ? exitCodes.ok : exitCodes.problemFound;
  if (flags.output === 'json')
    await writeJson(context.io.stdout, { ok: report.findings.length === 0, ...report });
  else await context.io.stdout.write(reportText(report, dataDir));
  return exitCode;
}

function reportText({ findings, contents }: StoreReport, dataDir: string): string {
  const lines = findings.map(({ kind, message }) => `${kind}: ${printable(message)}\n`);
  if (contents !== null) {
    const { jobs, events, pages } = contents;
    const verdict = findings.length === 0 ? 'is intact' : `is damaged (${findings.length} findings)`;
    lines.push(`The store of ${dataDir} ${verdict}: ${jobs} jobs, ${events} events, ${pages} pages.\n`);
  }
  return lines.join('');
}

async function backupStore(context: Context, file: string | undefined, flags: QueryFlags): Promise<ExitCode> {
  const path = neededFile(context, file, 'backup');
  const bytes = await writePieces(path, async (take) => {
    try {
      await withSession(context, flags, async ({ api }) => take(api.backupStore()));
    } catch (error) {
      if (flags.data === undefined || !isAway(error)) throw error;
      await takeOffline(dataDirOf(context, flags), context.clock.wallMs(), take);
    }
  });
  const { openBackup } = await import('@muster/coordinator/store/sqlite/backup');
  const about = await offline(null, async () => {
    const backup = openBackup(path);
    backup.close();
    return backup.about;
  });
  if (flags.output === 'json') await writeJson(context.io.stdout, { file: path, bytes, ...about });
  else {
    await context.io.stdout.write(
      `${path} holds the store of cluster ${about.clusterId} up to event ${about.lastEventSeq} (${bytesText(bytes)}); it was ` +
        'read back and is intact.\n',
    );
  }
  return exitCodes.ok;
}

/** Under another name until all of it is on disk. */
async function writePieces(
  path: string,
  work: (take: (pieces: AsyncIterable<Buffer>) => Promise<void>) => Promise<void>,
): Promise<number> {
  const part = `${path}.part`;
  rmSync(part, { force: true });
  const file = await open(part, 'wx', 0o600);
  let bytes = 0;
  try {
    await work(async (pieces) => {
      for await (const piece of pieces) {
        await file.writeFile(piece);
        bytes += piece.length;
      }
    });
    await file.sync();
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  await rename(part, path);
  syncDirectory(dirname(path));
  return bytes;
}

function isAway(error: unknown): boolean {
  return (error instanceof MusterError && error.code === 'unavailable') || error instanceof CliError;
}

async function takeOffline(
  dataDir: string,
  nowMs: number,
  take: (pieces: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const { openExistingStore } = await import('@muster/coordinator/store/sqlite/checkStore');
  await offline(dataDir, async () => {
    const store = openExistingStore(dataDir);
    try {
      await take(store.backup(nowMs));
    } finally {
      await store.close();
    }
  });
}

async function restoreStore(
  context: Context,
  file: string | undefined,
  flags: QueryFlags,
): Promise<ExitCode> {
  const path = neededFile(context, file, 'restore');
  const dataDir = dataDirOf(context, flags);
  const { restoreStore: restore } = await import('@muster/coordinator/store/sqlite/restoreStore');
  const replaced = await offline(dataDir, () => restore(dataDir, path, context.clock.wallMs()));
  return tellReplaced(context, flags, `The store of ${dataDir} is now ${path}`, replaced);
}

async function acceptStore(context: Context, file: string | undefined, flags: QueryFlags): Promise<ExitCode> {
  refuseFile(file);
  const dataDir = dataDirOf(context, flags);
  const { acceptStore: accept } = await import('@muster/coordinator/store/sqlite/restoreStore');
  const replaced = await offline(dataDir, async () => accept(dataDir, context.clock.wallMs()));
  if (replaced === null) {
    if (flags.output === 'json') await writeJson(context.io.stdout, { accepted: false });
    else
      await context.io.stdout.write(
        `Nothing is missing in the store of ${dataDir}, so nothing was changed.\n`,
      );
    return exitCodes.ok;
  }
  return tellReplaced(context, flags, `The store of ${dataDir} is accepted as it is`, replaced);
}

async function tellReplaced(
  { io }: Context,
  flags: QueryFlags,
  what: string,
  replaced: ReplacedStore,
): Promise<ExitCode> {
  if (flags.output === 'json') {
    await writeJson(io.stdout, replaced);
    return exitCodes.ok;
  }
  const { lastEventSeq, lostEvents, lostJobs, keptIn } = replaced;
  const lost =
    lostEvents === null ? 'what is lost is not known' : `lost: ${lostJobs} jobs, ${lostEvents} events`;
  const kept = keptIn === null ? '' : `The files as they were are in ${keptIn}.\n`;
  await io.stdout.write(
    `${what}, up to event ${lastEventSeq}; ${lost}.\n${kept}Start the coordinator. It starts jobs again once attempts that it ` +
      'does not know of no longer have leases.\n',
  );
  return exitCodes.ok;
}

async function advanceStore(
  context: Context,
  file: string | undefined,
  flags: QueryFlags,
): Promise<ExitCode> {
  refuseFile(file);
  const { io, environment } = context;
  const { cluster, nodes } = await withSession(context, flags, async ({ api }) => {
    const advanced = await api.advanceStore();
    return { cluster: advanced, nodes: await api.listNodes() };
  });
  if (flags.output === 'json') {
    const orphans = nodes.flatMap(({ name, orphans: tasks }) =>
      tasks.map((each) => ({ node: name, ...each })),
    );
    await writeJson(io.stdout, { ...cluster, orphans });
    return exitCodes.ok;
  }
  const because = printable(cluster.pausedBecause);
  await io.stdout.write(
    because === ''
      ? 'The store was advanced; jobs are started again.\n'
      : `The store was advanced; nothing is started yet: ${because}.\n`,
  );
  await io.stdout.write(orphansText(nodes, environment.programName));
  return exitCodes.ok;
}

function refuseFile(file: string | undefined): void {
  if (file !== undefined) throw usageError(`"${file}": only \`backup\` and \`restore\` take a file`);
}

function neededFile({ environment }: Context, file: string | undefined, action: string): string {
  if (file === undefined) throw usageError(`name the file: ${environment.programName} store ${action} FILE`);
  return resolve(environment.workingDir, file);
}

function dataDirOf({ environment }: Context, { data }: QueryFlags): string {
  return resolve(environment.workingDir, data ?? environment.dataDir ?? lastDataDir(environment));
}

/**
 * The store's own errors are sentences for the user.
 * @param dataDir of the store that the work may write to, as root for a coordinator that is another user; null: of none
 */
async function offline<T>(dataDir: string | null, work: () => Promise<T>): Promise<T> {
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
    if (error instanceof Error && code !== undefined) throw new CliError(error.message, { cause: error });
    throw error;
  }
}

async function giveToOwner(dataDir: string): Promise<void> {
  const { giveStoreToItsOwner } = await import('@muster/coordinator/store/sqlite/ownership');
  giveStoreToItsOwner(dataDir);
}
