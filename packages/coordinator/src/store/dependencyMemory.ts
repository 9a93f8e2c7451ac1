/** What memory has to know of the jobs that others come after, as the store has it. */
import { type ArrayId, isArrayId, type JobId } from '@muster/common/ids';
import { type Dependency, parseDependency } from '@muster/common/spec/after';
import type { Job } from '../model.ts';
import type { Store, StoredOutcome } from './store.ts';

/** What memory keeps of the jobs that active jobs come after. */
export interface DependencyMemory {
  readonly jobs: ReadonlyMap<JobId, unknown>;
  readonly outcomes: Map<JobId, StoredOutcome>;
  /** By the job that was requeued, the newest that runs it again; as far as active jobs come after it. */
  readonly successors: Map<JobId, JobId>;
  /** Of arrays that active jobs come after, the jobs that failed or were cancelled and were not run again. */
  readonly arrayFailures: Map<ArrayId, Set<JobId>>;
}

type DependencyStore = Pick<Store, 'readOutcomes' | 'readSuccessors' | 'readArrayFailures'>;

/** Reads what memory has to know of what a job comes after. */
export async function learnDependencies(
  memory: DependencyMemory,
  store: DependencyStore,
  dependencies: readonly Dependency[],
): Promise<void> {
  let ids = dependencies.flatMap(({ on }) => (isArrayId(on) ? [] : [on as JobId]));
  while (ids.length > 0) {
    const unknown = [...new Set(ids)].filter((id) => !memory.jobs.has(id));
    const outcomes = await store.readOutcomes(unknown.filter((id) => !memory.outcomes.has(id)));
    for (const [id, outcome] of outcomes) if (!memory.jobs.has(id)) memory.outcomes.set(id, outcome);
    const successors = await store.readSuccessors(unknown);
    // One that was noted meanwhile is newer.
    for (const [id, next] of successors) if (!memory.successors.has(id)) memory.successors.set(id, next);
    ids = [...successors.values()];
  }
  for (const { on } of dependencies) {
    if (!isArrayId(on) || memory.arrayFailures.has(on)) continue;
    const failures = new Set<JobId>();
    // From here on the ends of its jobs are noted in it.
    memory.arrayFailures.set(on, failures);
    for (const id of await store.readArrayFailures(on)) if (!memory.successors.has(id)) failures.add(id);
  }
}

/** What a coordinator that starts has to know of what its active jobs come after. */
export async function dependencySnapshot(
  store: DependencyStore,
  activeJobs: readonly Job[],
): Promise<Pick<DependencyMemory, 'outcomes' | 'successors' | 'arrayFailures'>> {
  const memory: DependencyMemory = {
    jobs: new Map(activeJobs.map(({ id }) => [id, true])),
    outcomes: new Map(),
    successors: new Map(),
    arrayFailures: new Map(),
  };
  const texts = new Set(activeJobs.flatMap(({ spec }) => spec.after));
  await learnDependencies(memory, store, [...texts].map(parseDependency));
  return memory;
}
