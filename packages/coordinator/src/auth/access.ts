/**
 * Which jobs, projects and tokens a caller may use. The policy has decided before that the caller may make the call at all.
 * Pure functions: whether a project is private is an argument.
 */
import { MusterError } from '@muster/common/errors';
import type { TokenScope } from '@muster/common/people';
import type { Identity, UserIdentity } from '../caller.ts';

/** Whose a job is. */
export interface JobOwner {
  /** null: unknown. */
  readonly user: string | null;
  readonly project: string;
}

/** Whether a caller may use every job, so that nothing has to be looked up. */
export function mayUseEveryJob(caller: Identity): boolean {
  return caller.kind !== 'user' || (isOperator(caller) && caller.onlyProjects === null);
}

/**
 * Whether a caller may read a job and what it has written, or change it. Its user and operators may. Others read the jobs of
 * projects that are not private, and change those of their own projects among them.
 */
export function mayUseOwned(
  caller: Identity,
  use: UserIdentity['use'],
  { user, project }: JobOwner,
  isPrivate: (project: string) => boolean,
): boolean {
  if (caller.kind !== 'user') return true;
  if (caller.onlyProjects?.includes(project) === false) return false;
  if (user === caller.user || isOperator(caller)) return true;
  return !isPrivate(project) && (use === 'read' || caller.projects.includes(project));
}

/** @throws {MusterError} `permission_denied` unless the caller may submit jobs to this project */
export function requireProject(caller: Identity, project: string): void {
  if (caller.kind !== 'user' || mayUseProject(caller, project)) return;
  const { user, projects, onlyProjects } = caller;
  const outside = isOutside(caller, project);
  const has = (outside ? onlyProjects : projects)?.join(', ') ?? '';
  const whose = outside ? 'this token is for' : `${user} is a member of`;
  const wanted = [...projects.filter((each) => each !== project), project];
  throw new MusterError(
    'permission_denied',
    `${whose} ${has === '' ? 'no project' : has}, not of ${project}; name another with --project, or ask an admin: ` +
      `muster user set ${user} ${wanted.map((each) => `--project ${each}`).join(' ')}`,
  );
}

/** Whether the caller may submit jobs to this project, and so use its secrets. */
export function mayUseProject(caller: Identity, project: string): boolean {
  if (caller.kind !== 'user') return true;
  return !isOutside(caller, project) && (isOperator(caller) || caller.projects.includes(project));
}

/** The token of this call is limited to other projects. */
function isOutside({ onlyProjects }: UserIdentity, project: string): boolean {
  return onlyProjects?.includes(project) === false;
}

/** Whether the caller is an admin, with a token that is not limited to less. */
export function maySeeAllTokens(caller: Identity): boolean {
  return caller.kind === 'admin' || (caller.kind === 'user' && caller.verbs.includes('administer'));
}

/**
 * Whether a token that is limited to `scope` allows nothing beyond one that is limited to `limit`, whatever role their user has now or
 * gets later.
 */
export function isWithin(scope: TokenScope, limit: TokenScope): boolean {
  const isPart = <T>(part: readonly T[] | null, whole: readonly T[] | null): boolean =>
    whole === null || (part?.every((each) => whole.includes(each)) ?? false);
  return (
    isPart(scope.verbs, limit.verbs) &&
    isPart(scope.projects, limit.projects) &&
    (limit.budget === null || scope.budget === limit.budget)
  );
}

/** Whether a user may do less now than when a call of theirs was let in. */
export function isReduced(before: UserIdentity, now: UserIdentity): boolean {
  return (
    (isOperator(before) && !isOperator(now)) ||
    before.verbs.some((verb) => !now.verbs.includes(verb)) ||
    before.projects.some((project) => !now.projects.includes(project))
  );
}

export function isOperator({ role }: UserIdentity): boolean {
  return role === 'operator' || role === 'admin';
}

/** Users may change and see their own alerts, and operators all. @param owner not a user: it is built in */
export function ownsAlert(caller: Identity, owner: unknown): boolean {
  return caller.kind !== 'user' || isOperator(caller) || owner === caller.user;
}
