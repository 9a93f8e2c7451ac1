export const selectNodes = {
  sql: /* sql */ `select name, body from nodes order by name`,
};
