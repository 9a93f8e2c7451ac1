/**
 * What conditions could see of each running job when it was looked at last. A heartbeat or a reading mostly has news of a few values,
 * or of none, and what reads none of those need not be evaluated again.
 */
import type { JobId } from '@muster/common/ids';
import { type FactOf, type FactValue, type KnownName, namesOfKind } from '../alerts/names.ts';

export class LastValues {
  private readonly seen = new Map<JobId, ReadonlyMap<string, FactValue>>();

  /**
   * Durations that have only grown count as they were: what depends on time is looked at regularly.
   * @param names that conditions use
   * @returns those of them that have other values than at the last call for this job
   */
  changes(id: JobId, names: ReadonlySet<string>, factOf: FactOf): ReadonlySet<string> {
    const before = this.seen.get(id);
    const values = new Map<string, FactValue>();
    for (const name of names) values.set(name, factOf(name));
    this.seen.set(id, values);
    const isChanged = (name: string) => isOther(name, before?.get(name), values.get(name));
    return new Set([...names].filter(isChanged));
  }

  forget(id: JobId): void {
    this.seen.delete(id);
  }
}

function isOther(name: string, before: FactValue | undefined, now: FactValue | undefined): boolean {
  const { type }: Partial<KnownName> = namesOfKind.job[name] ?? {};
  if (type === 'duration' && typeof before === 'number' && typeof now === 'number') return now < before;
  return !Object.is(before, now);
}
