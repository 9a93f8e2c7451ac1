/** Its row stays, empty: `selectSubjectPositions` finds by it where the numbers of its events go on. */
export const removeNodeRow = {
  sql: /* sql */ `update nodes set body = '' where name = :name`,
};
