export const selectNodes = {
  sql: /* sql */ `select name, body from nodes where body <> '' order by name`,
};
