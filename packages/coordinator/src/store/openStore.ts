/** The coordinator's store, whose upgrade is in the log before it begins: it delays the start. */

import type { RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { openSqliteStore, type SqliteStore } from './sqlite/sqliteStore.ts';

/** @throws {StoreError} as `openSqliteStore` */
export function openStore(dataDir: string, random: RandomBytes, log: Pick<Logger, 'warn'>): SqliteStore {
  return openSqliteStore(
    dataDir,
    () => Buffer.from(random(6)).toString('hex'),
    (upgrade) => log.warn({ ...upgrade, dataDir }, 'upgrading the store; a large one takes minutes'),
  );
}
