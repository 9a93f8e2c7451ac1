export const deleteCredential = {
  sql: /* sql */ `delete from credentials where id = :id`,
};
