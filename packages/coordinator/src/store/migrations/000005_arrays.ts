/** The spec of an array is stored once, here, and `jobs.spec` of its jobs is empty. */
export const arrays = /* sql */ `
create table arrays (
  id text primary key,
  spec text not null,
  size integer not null,
  filled integer not null,
  submitted_by text not null,
  submitted_at_ms integer not null
) strict, without rowid;
create index arrays_unfilled on arrays (id) where filled = 0;
`;
