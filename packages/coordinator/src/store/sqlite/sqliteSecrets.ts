import type { SQLInputValue } from 'node:sqlite';
import { type SecretStore, secretId } from '../secrets.ts';
import { type SecretRow, selectSecret, selectSecrets } from '../statements/secrets.ts';

type Rows = <Row>(sql: string, parameters?: Record<string, SQLInputValue>) => Row[];

export function sqliteSecrets(rows: Rows): SecretStore {
  return {
    async read(project, name) {
      const [row] = rows<SecretRow>(selectSecret.sql, { id: secretId({ project, name }) });
      return row === undefined ? null : selectSecret.fromRow(row);
    },
    list: async (project) => rows<SecretRow>(selectSecrets.sql, { project }).map(selectSecret.fromRow),
  };
}
