/** One upgrade of a machine at a time: a second one is told who was first. */
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { takeFileLock } from '@muster/agent/dataDir/fileLock';
import { makeDirectories } from '@muster/common/files';
import { CliError } from '../errors.ts';

interface Holder {
  /** The account, and the machine where it is not this one. */
  readonly who: string;
  /** Epoch milliseconds. */
  readonly sinceMs: number;
  readonly pid: number;
  readonly file: string;
}

/**
 * Holds the machine while `work` runs. The lock is the kernel's and ends with the process, however that ends.
 * @param runDir absolute; root's own, and empty after a boot
 * @throws {CliError} when somebody else upgrades this machine
 */
export async function upgradingAlone<T>(runDir: string, holder: Holder, work: () => Promise<T>): Promise<T> {
  makeDirectories(runDir, 0o700);
  const about = join(runDir, 'upgrade.json');
  const path = join(runDir, 'upgrade.lock');
  closeSync(openSync(path, 'a', 0o600));
  const lock = takeFileLock(path);
  if (lock === null)
    throw new CliError(`this machine is being upgraded: ${describe(about)}`, {
      hints: ['Nothing was changed. Once that has ended, the same command does what is left to do.'],
    });
  try {
    writeFileSync(about, JSON.stringify(holder), { mode: 0o600 });
    return await work();
  } finally {
    lock.close();
  }
}

function describe(about: string): string {
  try {
    const { who, sinceMs, pid, file } = JSON.parse(readFileSync(about, 'utf8')) as Holder;
    return `${who} runs \`muster upgrade ${file}\` since ${new Date(sinceMs).toISOString()} (process ${pid})`;
  } catch {
    // It has taken the lock and not yet said who it is.
    return 'another `muster upgrade` has just begun';
  }
}
