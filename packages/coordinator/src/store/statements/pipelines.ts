/** Statements about triggers, runs of pipelines and their steps, each with a key and its value as JSON. */
import type { StoredPipeline, StoredPipelineStep } from '../pipelines.ts';
import type { StoredTrigger } from '../triggers.ts';

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

export const upsertTrigger = {
  sql: /* sql */ `
    insert into triggers (name, body) values (:name, :body)
    on conflict (name) do update set body = excluded.body`,
  parameters: (trigger: StoredTrigger) => ({ name: trigger.name, body: JSON.stringify(trigger) }),
};

export const deleteTriggerRow = { sql: /* sql */ `delete from triggers where name = :name` };

export const selectTriggers = {
  sql: /* sql */ `select body from triggers order by name`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as StoredTrigger,
};
