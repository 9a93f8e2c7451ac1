/** Who has made a change; when credentials were used, and the secrets that they are renewed to. */
export const callers = /* sql */ `
alter table events add column caller text not null default '';
alter table events add column peer text not null default '';
alter table credentials add column last_used_at_ms integer;
alter table credentials add column replaces integer not null default 0;
alter table credentials add column next_hash text;
create unique index credentials_by_next_hash on credentials (next_hash) where next_hash is not null;
`;
