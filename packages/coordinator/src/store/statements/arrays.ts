import type { ArrayId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { Caller } from '../../caller.ts';
import { specText } from '../../specText.ts';
import type { JobArrayRecord } from '../store.ts';

interface ArrayRow {
  readonly id: string;
  readonly spec: string;
  readonly size: number;
  readonly submitted_by: string;
  readonly submitted_at_ms: number;
  /** Of its jobs. */
  readonly stored: number;
}

export const insertArray = {
  sql: /* sql */ `
    insert into arrays (id, spec, size, filled, submitted_by, submitted_at_ms)
    values (:id, :spec, :size, 0, :submitted_by, :submitted_at_ms)`,
  parameters: ({ id, spec, size, by, submittedAtMs }: JobArrayRecord) => ({
    id,
    spec: specText(spec),
    size,
    submitted_by: JSON.stringify(by),
    submitted_at_ms: submittedAtMs,
  }),
};

/** Changes exactly one row, or the commit fails. */
export const fillArray = { sql: /* sql */ `update arrays set filled = 1 where id = :id and filled = 0` };

export const selectArraySpec = { sql: /* sql */ `select spec from arrays where id = :id` };

export const selectUnfilledArrays = {
  sql: /* sql */ `
    select *, (select count(*) from jobs where jobs.array_id = arrays.id) as stored
    from arrays indexed by arrays_unfilled where filled = 0 order by id`,
  fromRow: (row: ArrayRow): JobArrayRecord => ({
    id: row.id as ArrayId,
    spec: decodeJobSpec(row.spec),
    size: row.size,
    filled: row.stored,
    by: JSON.parse(row.submitted_by) as Caller,
    submittedAtMs: row.submitted_at_ms,
  }),
};
