/** Statements about runs of pipelines and their steps, each with a key and its value as JSON. */
import type { StoredPipeline, StoredPipelineStep } from '../pipelines.ts';

interface BodyRow {
  readonly body: string;
}

export const upsertPipeline = {
  sql: /* sql */ `
    insert into pipelines (id, body) values (:id, :body)
    on conflict (id) do update set body = excluded.body`,
  parameters: (run: StoredPipeline) => ({ id: run.id, body: JSON.stringify(run) }),
};

export const deletePipeline = { sql: /* sql */ `delete from pipelines where id = :id` };

export const selectPipelines = {
  sql: /* sql */ `select body from pipelines order by id`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as StoredPipeline,
};

export const upsertPipelineStep = {
  sql: /* sql */ `
    insert into pipeline_steps (run, step, number, body) values (:run, :step, :number, :body)
    on conflict (run, step, number) do update set body = excluded.body`,
  parameters: (step: StoredPipelineStep) => ({
    run: step.run,
    step: step.step,
    number: step.index,
    body: JSON.stringify(step),
  }),
};

export const deletePipelineSteps = { sql: /* sql */ `delete from pipeline_steps where run = :id` };

export const selectPipelineSteps = {
  sql: /* sql */ `select body from pipeline_steps order by run, step, number`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as StoredPipelineStep,
};
