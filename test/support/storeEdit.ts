/** Changes a store while its coordinator is stopped, as a coordinator would: its witness and its page sums go along. */
import { closeDatabase, openDatabase } from '@muster/coordinator/store/sqlite/open';

/** @returns rows that were changed */
export function editStore(dataDir: string, sql: string, ...parameters: readonly (string | number)[]): number {
  const opened = openDatabase(dataDir, () => '');
  try {
    const { changes } = opened.database.prepare(sql).run(...parameters);
    opened.files.follow();
    opened.files.acknowledgeNow();
    return Number(changes);
  } finally {
    closeDatabase(opened);
    opened.lock.release();
  }
}
