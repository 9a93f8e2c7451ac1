/** What memory keeps of jobs that have ended: of most of them nothing, for the store tells. */
import type { JobId } from '@muster/common/ids';
import type { ClusterState } from './state.ts';
import type { Store } from './store/store.ts';

type Memory = Pick<ClusterState, 'jobs' | 'outcomes'>;

/** Beside those that active jobs come after. */
const outcomesKept = 10_000;

/** Reads of these jobs, as far as memory has nothing about them, how they have ended. */
export async function learnOutcomes(
  { jobs, outcomes }: Memory,
  store: Pick<Store, 'readOutcomes'>,
  ids: Iterable<JobId>,
): Promise<void> {
  const unknown = [...new Set(ids)].filter((id) => !jobs.has(id) && !outcomes.has(id));
  if (unknown.length === 0) return;
  for (const [id, outcome] of await store.readOutcomes(unknown)) outcomes.set(id, outcome);
}

/** Drops the oldest, once there are many, but what active jobs come after. */
export function forgetOutcomes({ jobs, outcomes }: Memory): void {
  if (outcomes.size <= 2 * outcomesKept) return;
  const needed = new Set<string>();
  for (const { spec } of jobs.values()) for (const id of spec.after) needed.add(id);
  for (const id of outcomes.keys()) {
    if (outcomes.size <= outcomesKept) return;
    if (!needed.has(id)) outcomes.delete(id);
  }
}
