/** Which projects and tokens a caller may use. The policy has decided before that the caller may make the call at all. */
import { MusterError } from '@muster/common/errors';
import type { Identity, UserIdentity } from '../caller.ts';

/** @throws {MusterError} `permission_denied` unless the caller may submit jobs to this project */
export function requireProject(caller: Identity, project: string): void {
  if (caller.kind !== 'user' || mayUseProject(caller, project)) return;
  const outside = isOutside(caller, project);
  const has = (outside ? caller.onlyProjects : caller.projects)?.join(', ') ?? '';
  const whose = outside ? 'this token is for' : `${caller.user} is a member of`;
  throw new MusterError(
    'permission_denied',
    `${whose} ${has === '' ? 'no project' : has}, not of ${project}; name another with --project, or ask an admin: ` +
      `muster user set ${caller.user} --project ${project}`,
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

function isOperator({ role }: UserIdentity): boolean {
  return role === 'operator' || role === 'admin';
}
