import type { NodeRow } from '../rows.ts';

export const upsertNode = {
  sql: /* sql */ `
    insert into nodes (name, body) values (:name, :body)
    on conflict (name) do update set body = excluded.body`,
  parameters: (row: NodeRow) => ({ ...row }),
};
