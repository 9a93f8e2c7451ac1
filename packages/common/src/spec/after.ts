/** What a job comes after: `JOB`, `JOB:ok`, `JOB:any` or `JOB:fail`, where JOB is whatever names a job or an array. */

/** ok: has succeeded; any: has ended, however; fail: has failed or was cancelled. Of an array: see the coordinator's rules. */
export const dependencyConditions = ['ok', 'any', 'fail'] as const;
export type DependencyCondition = (typeof dependencyConditions)[number];

export interface Dependency {
  /** As written; the coordinator keeps the id of a job or an array. */
  readonly on: string;
  readonly when: DependencyCondition;
}

export const afterPattern = /^[a-z0-9_][a-z0-9_-]{0,99}(?:\[\d{1,6}\])?(?::(?:ok|any|fail))?$/;
export const afterForm =
  'a job: its id, its name, NAME[3], an array or latest, and then :ok, :any or :fail if wanted';

/** @param text of the form of `afterPattern` */
export function parseDependency(text: string): Dependency {
  const [on = '', when = 'ok'] = text.split(':');
  return { on, when: when as DependencyCondition };
}

/** The one text of it: `ok` goes without saying. */
export function formatDependency({ on, when }: Dependency): string {
  return when === 'ok' ? on : `${on}:${when}`;
}
