import type { JobId } from '@muster/common/ids';
import type { RequestRecord } from '../store.ts';

interface RequestRow {
  readonly request_id: string;
  readonly digest: string;
  readonly job_ids: string;
  readonly array_id: string | null;
  readonly created_at_ms: number;
}

export const selectRequest = {
  sql: /* sql */ `select * from requests where request_id = :request_id`,
  fromRow: (row: RequestRow): RequestRecord => ({
    requestId: row.request_id,
    digest: row.digest,
    jobIds: JSON.parse(row.job_ids) as JobId[],
    arrayId: row.array_id,
    createdAtMs: row.created_at_ms,
  }),
};
