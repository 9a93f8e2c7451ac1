export const selectMeta = { sql: /* sql */ `select value from meta where name = :name` };

export const upsertMeta = {
  sql: /* sql */ `
    insert into meta (name, value) values (:name, :value)
    on conflict (name) do update set value = excluded.value`,
};
