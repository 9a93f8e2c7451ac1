/** How far the jobs of an array are stored, and the places that they have in the order of submission, whenever they are. */
export const arrayProgress = /* sql */ `
alter table arrays add column next_position integer not null default 0;
update arrays set next_position = (select count(*) from jobs where jobs.array_id = arrays.id) where filled = 0;
alter table arrays add column first_submit_seq integer;
`;
