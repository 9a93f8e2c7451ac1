/**
 * What jobs come after. A dependency names a job or an array by its id and never changes; who runs it again takes its place,
 * so that a job that waits follows a requeue. Pure: `store/dependencyMemory.ts` reads what this has to know.
 */
import { type ArrayId, isArrayId, type JobId } from '@muster/common/ids';
import { type Dependency, parseDependency } from '@muster/common/spec/after';
import { isTerminal } from '@muster/common/states';
import type { Job } from '../model.ts';
import type { DependencyState } from '../scheduler/view.ts';
import type { DependencyMemory } from '../store/dependencyMemory.ts';
import type { StoredOutcome } from '../store/store.ts';

/** What is known of the jobs that others come after. */
export interface KnownJobs {
  /** undefined: it has not ended. */
  outcome(id: JobId): StoredOutcome | undefined;
  /** The newest job that runs this one again. */
  successor(id: JobId): JobId | undefined;
  array(id: ArrayId): ArrayProgress;
}

/** Of an array, jobs that were run again left aside. */
export interface ArrayProgress {
  /** Some have not ended, or are not stored yet. */
  readonly isActive: boolean;
  /** One that failed or was cancelled. null: none did. */
  readonly failed: JobId | null;
}

/** Of what a job comes after, by its spec. */
export function dependenciesOf({ spec }: Pick<Job, 'spec'>): readonly Dependency[] {
  return spec.after.map(parseDependency);
}

export function dependencyState(known: KnownJobs, job: Pick<Job, 'spec'>): DependencyState {
  let waiting: DependencyState | null = null;
  for (const each of dependenciesOf(job)) {
    const state = isArrayId(each.on)
      ? stateOfArray(each.on, each, known.array(each.on))
      : stateOfJob(successorOf(known, each.on as JobId), each, known);
    if (state.kind === 'failed') return state;
    if (state.kind === 'waiting') waiting ??= state;
  }
  return waiting ?? { kind: 'met' };
}

function successorOf(known: KnownJobs, id: JobId): JobId {
  let current = id;
  for (let next = known.successor(id); next !== undefined; next = known.successor(next)) current = next;
  return current;
}

function stateOfJob(id: JobId, { when }: Dependency, known: KnownJobs): DependencyState {
  const outcome = known.outcome(id);
  if (outcome === undefined) return { kind: 'waiting', on: id, when };
  if (when === 'any') return { kind: 'met' };
  if (outcome === 'removed') return { kind: 'failed', on: id, what: 'was removed by retention' };
  return isAsWanted(outcome, when) ? { kind: 'met' } : { kind: 'failed', on: id, what: outcomeText(outcome) };
}

/** Whether a job that has ended meets a dependency on its success, or on its failure. */
export function isAsWanted(outcome: StoredOutcome, when: Exclude<Dependency['when'], 'any'>): boolean {
  return (outcome === 'succeeded') === (when === 'ok');
}

function outcomeText(outcome: Exclude<StoredOutcome, 'removed'>): string {
  return outcome === 'cancelled' ? 'was cancelled' : outcome;
}

/** `ok`: all have succeeded; `any`: all have ended; `fail`: all have ended, and one of them not well. */
function stateOfArray(
  id: ArrayId,
  { when }: Dependency,
  { isActive, failed }: ArrayProgress,
): DependencyState {
  if (when === 'ok' && failed !== null)
    return { kind: 'failed', on: id, what: `has a job that did not succeed, ${failed}` };
  if (isActive) return { kind: 'waiting', on: id, when };
  if (when === 'fail' && failed === null) return { kind: 'failed', on: id, what: 'succeeded' };
  return { kind: 'met' };
}

interface DependentsMemory extends Omit<DependencyMemory, 'outcomes'> {
  readonly activeInArrays: Map<ArrayId, number>;
}

/** Takes note of a job as it is now, before memory knows it as that. */
export function noteForDependents(memory: DependentsMemory, { id, array, requeuedFrom, state }: Job): void {
  const isNew = !memory.jobs.has(id);
  const isOver = isTerminal(state.kind);
  if (isNew && requeuedFrom !== null) memory.successors.set(requeuedFrom, id);
  if (array === null) return;
  const active = (memory.activeInArrays.get(array.id) ?? 0) + Number(!isOver) - Number(!isNew);
  if (active === 0) memory.activeInArrays.delete(array.id);
  else memory.activeInArrays.set(array.id, active);
  const failures = memory.arrayFailures.get(array.id);
  if (requeuedFrom !== null) failures?.delete(requeuedFrom);
  if (isOver && state.kind !== 'succeeded') failures?.add(id);
}

/** @param drafted jobs that a draft has changed, as it has them */
export function progressOf(
  memory: DependentsMemory,
  drafted: Iterable<Job>,
  arrayId: ArrayId,
  successor: KnownJobs['successor'],
): ArrayProgress {
  let active = memory.activeInArrays.get(arrayId) ?? 0;
  let failed: JobId | null = null;
  for (const { id, array, state } of drafted) {
    if (array?.id !== arrayId) continue;
    const isOver = isTerminal(state.kind);
    active += Number(!isOver) - Number(memory.jobs.has(id));
    if (isOver && state.kind !== 'succeeded' && successor(id) === undefined) failed = id;
  }
  for (const id of memory.arrayFailures.get(arrayId) ?? []) {
    if (failed !== null) break;
    if (successor(id) === undefined) failed = id;
  }
  return { isActive: active > 0, failed };
}
