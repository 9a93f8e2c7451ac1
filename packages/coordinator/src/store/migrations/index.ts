/**
 * Schema changes, oldest first; the position is the schema version. Forward only: what has been released is never
 * edited, and a binary refuses a store with a version it does not know.
 */
import { initialSchema } from './000001_initial.ts';
import { indexesForLists } from './000003_scale.ts';
import { callers } from './000004_callers.ts';

export const migrations: readonly string[] = [initialSchema, indexesForLists, callers];
