import type { RequestRecord } from '../store.ts';

export const insertRequest = {
  sql: /* sql */ `
    insert into requests (request_id, digest, job_ids, array_id, created_at_ms)
    values (:request_id, :digest, :job_ids, :array_id, :created_at_ms)`,
  parameters: (request: RequestRecord) => ({
    request_id: request.requestId,
    digest: request.digest,
    job_ids: JSON.stringify(request.jobIds),
    array_id: request.arrayId,
    created_at_ms: request.createdAtMs,
  }),
};
