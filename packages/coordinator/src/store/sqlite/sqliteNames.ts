/** Names in the embedded store. */
import type { SQLInputValue } from 'node:sqlite';
import type { ArrayId, JobId } from '@muster/common/ids';
import { selectJobIds } from '../statements/jobs.ts';
import { selectMember, selectNewestArray, selectNextArrayId, selectNextName } from '../statements/lists.ts';
import type { NameStore } from '../store.ts';

/** @param rows the store's own way to run a statement */
export function sqliteNames(
  rows: <Row>(sql: string, parameters: Record<string, SQLInputValue>) => Row[],
): NameStore {
  /** Distinct values that begin with `prefix`, one look-up in an index for each. */
  function distinct(sql: string, prefix: string, limit: number): readonly string[] {
    const found: string[] = [];
    while (found.length < limit) {
      const [row] = rows<{ value: string }>(sql, { from: prefix, after: found.at(-1) ?? '' });
      if (row === undefined || !row.value.startsWith(prefix)) break;
      found.push(row.value);
    }
    return found;
  }

  return {
    async jobIds(prefix, limit) {
      const range = { from: prefix, to: `${prefix}\u{10ffff}`, limit };
      return rows<{ id: JobId }>(selectJobIds.sql, range).map((row) => row.id);
    },
    async arrayIds(prefix, limit) {
      return distinct(selectNextArrayId.sql, prefix, limit) as readonly ArrayId[];
    },
    async names(prefix, limit) {
      return distinct(selectNextName.sql, prefix, limit);
    },
    async newestArray(name) {
      return rows<{ array_id: ArrayId }>(selectNewestArray.sql, { name })[0]?.array_id ?? null;
    },
    async member(arrayId, index) {
      const wanted = { array_id: arrayId, array_index: index };
      return rows<{ id: JobId }>(selectMember.sql, wanted)[0]?.id ?? null;
    },
  };
}
