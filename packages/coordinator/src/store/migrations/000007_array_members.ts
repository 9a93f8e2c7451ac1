/** Jobs of an array are found by its id or its name and by their index. */
export const arrayMembers = /* sql */ `
alter table jobs add column array_index integer;
update jobs set array_index = json_extract(body, '$.array.index') where array_id is not null;
create index jobs_by_member on jobs (array_id, array_index, submit_seq) where array_id is not null;
create index jobs_by_name_of_array on jobs (name, submit_seq) where array_id is not null;
`;
