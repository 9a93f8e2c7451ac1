/** Statements about evaluations of checkpoints: those of a job are one value, as JSON. */
import type { JobEvaluations } from '../evaluations.ts';

export const upsertEvaluations = {
  sql: /* sql */ `
    insert into evaluations (job, body) values (:job, :body)
    on conflict (job) do update set body = excluded.body`,
  parameters: (of: JobEvaluations) => ({ job: of.job, body: JSON.stringify(of) }),
};

export const deleteEvaluations = { sql: /* sql */ `delete from evaluations where job = :job` };

export const selectEvaluations = {
  sql: /* sql */ `select body from evaluations order by job`,
  fromRow: ({ body }: { readonly body: string }) => JSON.parse(body) as JobEvaluations,
};
