/** Who has made a change, and what is known of credentials beside their secrets. */
export const callers = /* sql */ `
alter table events add column caller text not null default '';
alter table events add column peer text not null default '';
alter table credentials add column last_used_at_ms integer;
alter table credentials add column replaces integer not null default 0;
`;
