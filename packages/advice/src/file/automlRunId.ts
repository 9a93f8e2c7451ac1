import { createHash } from 'node:crypto';
import type { AutomlContext } from '../automl/automlFields.ts';

/** The same task has the same run, so that the command can be repeated after it was interrupted. */
export function automlRunId(context: AutomlContext): string {
  return createHash('sha256').update(JSON.stringify(context)).digest('hex').slice(0, 10);
}
