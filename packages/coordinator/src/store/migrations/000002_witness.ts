/** Nothing in the tables: from here on a store has a witness and page sums beside it, which earlier versions do not keep. */
export const witness = /* sql */ `
insert into meta (name, value) values ('witnessed', '1');
`;
