/**
 * Schema changes, oldest first; the position is the schema version. Forward only: what has been released is never
 * edited, new ones are appended, and a binary refuses a store with a version it does not know.
 */
import { initialSchema } from './000001_initial.ts';
import { witness } from './000002_witness.ts';
import { indexesForLists } from './000003_scale.ts';
import { callers } from './000004_callers.ts';
import { arrays } from './000005_arrays.ts';
import { retention } from './000006_retention.ts';
import { arrayMembers } from './000007_array_members.ts';
import { lineage } from './000008_lineage.ts';
import { dependencies } from './000009_dependencies.ts';
import { jobFilters } from './000010_job_filters.ts';
import { users } from './000011_users.ts';
import { arrayProgress } from './000012_array_progress.ts';
import { filtersInOrder } from './000013_filters_in_order.ts';
import { taskStateNames } from './000014_task_states.ts';

export const migrations: readonly string[] = [
  initialSchema,
  indexesForLists,
  callers,
  witness,
  arrays,
  retention,
  arrayMembers,
  lineage,
  dependencies,
  jobFilters,
  users,
  arrayProgress,
  filtersInOrder,
  taskStateNames,
];

/** Since this version every store has a witness and page sums beside it. */
export const witnessedSince = migrations.indexOf(witness) + 1;
