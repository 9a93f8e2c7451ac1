/** Statements about sweeps and their trials, each with a key and its value as JSON. */
import type { StoredSweep, StoredTrial } from '../sweeps.ts';

interface BodyRow {
  readonly body: string;
}

export const upsertSweep = {
  sql: /* sql */ `
    insert into sweeps (id, body) values (:id, :body)
    on conflict (id) do update set body = excluded.body`,
  parameters: (sweep: StoredSweep) => ({ id: sweep.id, body: JSON.stringify(sweep) }),
};

export const deleteSweep = { sql: /* sql */ `delete from sweeps where id = :id` };

export const selectSweeps = {
  sql: /* sql */ `select body from sweeps order by id`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as StoredSweep,
};

export const upsertTrial = {
  sql: /* sql */ `
    insert into sweep_trials (sweep, number, body) values (:sweep, :number, :body)
    on conflict (sweep, number) do update set body = excluded.body`,
  parameters: (trial: StoredTrial) => ({
    sweep: trial.sweep,
    number: trial.number,
    body: JSON.stringify(trial),
  }),
};

export const deleteTrials = { sql: /* sql */ `delete from sweep_trials where sweep = :id` };

export const selectTrials = {
  sql: /* sql */ `select body from sweep_trials order by sweep, number`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as StoredTrial,
};
