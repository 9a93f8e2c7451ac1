import type { ArrayId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { Caller } from '../../caller.ts';
import { specText } from '../../spec/specText.ts';
import type { JobArrayRecord } from '../store.ts';

interface ArrayRow {
  readonly id: string;
  readonly spec: string;
  readonly size: number;
  readonly submitted_by: string;
  readonly submitted_at_ms: number;
  readonly next_position: number;
  readonly first_submit_seq: number | null;
}

export const insertArray = {
  sql: /* sql */ `
    insert into arrays (id, spec, size, filled, submitted_by, submitted_at_ms, next_position, first_submit_seq)
    values (:id, :spec, :size, :is_filled, :submitted_by, :submitted_at_ms, :filled, :first_submit_seq)`,
  parameters: ({ id, spec, size, filled, by, submittedAtMs, firstSubmitSeq }: JobArrayRecord) => ({
    id,
    spec: specText(spec),
    ...{ size, filled, is_filled: Number(filled === size), first_submit_seq: firstSubmitSeq },
    submitted_by: JSON.stringify(by),
    submitted_at_ms: submittedAtMs,
  }),
};

/** Changes exactly one row, or the commit fails. */
export const updateArrayProgress = {
  sql: /* sql */ `
    update arrays set filled = :is_filled, next_position = :filled
    where id = :id and filled = 0 and next_position <= :filled`,
  parameters: ({ id, size, filled }: JobArrayRecord) => ({
    ...{ id, filled, is_filled: Number(filled === size) },
  }),
};

export const selectArraySpec = { sql: /* sql */ `select spec from arrays where id = :id` };

export const selectUnfilledArrays = {
  sql: /* sql */ `
    select * from arrays indexed by arrays_unfilled where filled = 0 order by id`,
  fromRow: (row: ArrayRow): JobArrayRecord => ({
    id: row.id as ArrayId,
    spec: decodeJobSpec(row.spec),
    size: row.size,
    filled: row.next_position,
    early: new Set(),
    firstSubmitSeq: row.first_submit_seq,
    by: JSON.parse(row.submitted_by) as Caller,
    submittedAtMs: row.submitted_at_ms,
  }),
};

/** Of its jobs with this index or a higher one. */
export const selectStoredIndexes = {
  sql: /* sql */ `
    select array_index from jobs indexed by jobs_by_member
    where array_id is not null and array_id = :array_id and array_index >= :from_index`,
};
