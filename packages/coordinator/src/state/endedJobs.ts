/** The facts about ended jobs that stay in memory. Most ended jobs leave nothing there, because the store has them. */
import type { JobId } from '@muster/common/ids';
import type { Store } from '../store/store.ts';
import { dependenciesOf } from './dependencies.ts';
import type { ClusterState } from './state.ts';

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
export function forgetOutcomes(
  memory: Memory & Pick<ClusterState, 'arrays' | 'arrayFailures' | 'successors'>,
): void {
  const { jobs, arrays, arrayFailures, outcomes, successors } = memory;
  if ([arrayFailures, outcomes, successors].every(({ size }) => size <= 2 * outcomesKept)) return;
  const needed = new Set<string>();
  for (const job of [...jobs.values(), ...arrays.values()]) {
    for (const { on } of dependenciesOf(job)) {
      for (let id: string | undefined = on; id !== undefined; id = successors.get(id as JobId))
        needed.add(id);
    }
  }
  dropOldest(outcomes, needed);
  dropOldest(successors, needed);
  // The newest stay: a job that comes after one of them may be about to be stored.
  dropOldest(arrayFailures, needed);
}

function dropOldest<Id extends string>(known: Map<Id, unknown>, needed: ReadonlySet<string>): void {
  for (const id of known.keys()) {
    if (known.size <= outcomesKept) return;
    if (!needed.has(id)) known.delete(id);
  }
}
