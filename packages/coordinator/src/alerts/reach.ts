/** Which jobs and nodes an alert looks at. Pure. */
import type { AlertScope } from '@muster/common/alerts';
import { builtInAdmin, type User } from '@muster/common/people';
import { mayUseOwned } from '../auth/access.ts';
import type { Identity } from '../caller.ts';
import type { Job } from '../model.ts';
import { isPrivate, type People } from '../state/people.ts';

/** @param owner null: it is built in */
export function looksAtJob(
  { kind, jobId, labels, project }: AlertScope,
  owner: string | null,
  people: People,
  job: Pick<Job, 'id' | 'user' | 'spec'>,
): boolean {
  if (kind !== 'job') return false;
  if (jobId !== null && jobId !== job.id) return false;
  if (project !== null && project !== job.spec.project) return false;
  for (const [name, value] of Object.entries(labels)) if (job.spec.labels[name] !== value) return false;
  return mayChange(owner, people, job);
}

export function looksAtNode({ kind, nodes }: AlertScope, node: string): boolean {
  return kind === 'node' && (nodes.length === 0 || nodes.includes(node));
}

/** An alert ignores jobs that its owner may no longer change. */
function mayChange(
  owner: string | null,
  people: People,
  { user, spec }: Pick<Job, 'user' | 'spec'>,
): boolean {
  if (owner === null || owner === builtInAdmin) return true;
  const known = people.users.get(owner);
  if (known === undefined || known.role === 'disabled' || known.role === 'viewer') return false;
  return mayUseOwned(identityOf(known), 'change', { user, project: spec.project }, (project) =>
    isPrivate(people, project),
  );
}

function identityOf({ name: user, role, projects }: User): Identity {
  return {
    kind: 'user',
    id: '',
    peer: null,
    user,
    role,
    verbs: [],
    projects,
    onlyProjects: null,
    budget: null,
    use: 'change',
  };
}
