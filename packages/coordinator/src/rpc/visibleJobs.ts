/** Which jobs a call may concern, as questions to the state and the store. The rules are those of `auth/access.ts`. */
import type { AlertScope } from '@muster/common/alerts';
import { MusterError } from '@muster/common/errors';
import { isJobId, type JobId } from '@muster/common/ids';
import {
  isOperator,
  type JobOwner,
  maySeeAllTokens,
  mayUseEveryJob,
  mayUseOwned,
  mayUseProject,
  ownsAlert,
} from '../auth/access.ts';
import type { Identity } from '../caller.ts';
import type { Job, StoredEvent } from '../model.ts';
import { isPrivate } from '../state/people.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store, VisibleJobs } from '../store/store.ts';

export interface VisibleParts {
  readonly state: Pick<ClusterState, 'jobs' | 'people'>;
  readonly store: Pick<Store, 'readJob'>;
}

/** What a list is narrowed to. @returns undefined: to nothing */
export function visibleTo(
  { people }: Pick<ClusterState, 'people'>,
  caller: Identity,
): VisibleJobs | undefined {
  if (caller.kind !== 'user' || mayUseEveryJob(caller)) return undefined;
  const { user, onlyProjects } = caller;
  const hiddenProjects = isOperator(caller)
    ? []
    : [...people.projects.values()].filter((project) => project.isPrivate).map(({ name }) => name);
  if (hiddenProjects.length === 0 && onlyProjects === null) return undefined;
  return { user, hiddenProjects, onlyProjects };
}

/** Whether a caller may read a job. */
export function isVisibleTo({ people }: Pick<ClusterState, 'people'>, caller: Identity, job: Job): boolean {
  return mayUseOwned(caller, 'read', ownerOf(job), (project) => isPrivate(people, project));
}

/**
 * @returns false: for the caller there is no such job
 * @throws {MusterError} `permission_denied` for a job that the caller may read, and not change as this call does
 */
export async function mayUseJob(parts: VisibleParts, caller: Identity, id: JobId): Promise<boolean> {
  if (caller.kind !== 'user' || mayUseEveryJob(caller)) return true;
  const job = parts.state.jobs.get(id) ?? (await parts.store.readJob(id))?.job;
  if (job === undefined || !isVisibleTo(parts.state, caller, job)) return false;
  const owner = ownerOf(job);
  if (mayUseOwned(caller, caller.use, owner, (project) => isPrivate(parts.state.people, project)))
    return true;
  throw new MusterError(
    'permission_denied',
    `${id} belongs to ${owner.user ?? 'another user'}: only they, members of ${owner.project} and operators may change it`,
  );
}

/** For references within a call that changes other jobs than these. */
export function asReader(caller: Identity): Identity {
  return caller.kind === 'user' ? { ...caller, use: 'read' } : caller;
}

/** Of so many jobs it is remembered whether they are visible. */
const rememberedMax = 10_000;

/**
 * Which events a watch shows: those of visible jobs, what concerns secrets to those who may use them, and what concerns users and tokens
 * to admins only.
 * @returns null: all of them
 */
export function eventFilter(
  { state, store }: VisibleParts & { readonly state: Pick<ClusterState, 'alerts'> },
  caller: Identity,
): ((event: Pick<StoredEvent, 'kind' | 'subject' | 'data'>) => Promise<boolean>) | null {
  const seesTokens = maySeeAllTokens(caller);
  const seesJobs = mayUseEveryJob(caller);
  if (seesTokens && seesJobs) return null;
  const known = new Map<string, boolean>();
  return async ({ kind, subject, data }) => {
    if (/^(?:token|user)\./.test(kind)) return seesTokens;
    if (kind.startsWith('alert.'))
      return (
        ownsAlert(caller, data['owner']) && isWithinProjects({ state, store }, caller, reachOf(state, data))
      );
    if (/^(?:sweep|pipeline|trigger)\./.test(kind)) return seesSweep(state.people, caller, data);
    // What was visible may no longer be.
    if (kind === 'project.changed' || known.size > rememberedMax) known.clear();
    if (seesJobs) return true;
    if (kind === 'secret.set' || kind === 'secret.removed')
      return mayUseProject(caller, String(data['project']));
    // Of a job that has ended, the subject may be the cluster. One that was removed is shown to nobody: its project is unknown.
    const id = isJobId(subject) ? subject : (data['jobId'] ?? data['job']);
    if (typeof id !== 'string' || !isJobId(id)) return true;
    const before = known.get(id);
    if (before !== undefined) return before;
    const job = state.jobs.get(id) ?? (await store.readJob(id))?.job;
    const isShown = job !== undefined && isVisibleTo(state, caller, job);
    known.set(id, isShown);
    return isShown;
  };
}

/** What a token that is limited to projects is compared with. */
type AlertReach = Pick<AlertScope, 'jobId' | 'project'>;

/** What an event of an alert is about: a job, or whatever the alert looks at. */
function reachOf(
  { alerts }: Pick<ClusterState, 'alerts'>,
  { of, scope, alert }: StoredEvent['data'],
): AlertReach {
  if (typeof of === 'string') return { jobId: of, project: null };
  const known = (scope as AlertReach | undefined) ?? alerts.rules.get(String(alert))?.scope;
  return known ?? { jobId: null, project: null };
}

/** Whether an alert looks at nothing outside of the projects that the token of the caller is limited to. */
export async function isWithinProjects(
  parts: VisibleParts,
  caller: Identity,
  { jobId, project }: AlertReach,
): Promise<boolean> {
  if (caller.kind !== 'user' || caller.onlyProjects === null) return true;
  if (project !== null) return caller.onlyProjects.includes(project);
  return jobId !== null && isJobId(jobId) && mayUseJob(parts, asReader(caller), jobId);
}

/** A sweep or a run of a pipeline is seen by those who see its jobs. */
export function seesSweep(
  people: ClusterState['people'],
  caller: Identity,
  { user, project }: { readonly [name: string]: unknown },
): boolean {
  const owner = { user: String(user), project: String(project) };
  return mayUseOwned(caller, 'read', owner, (name) => isPrivate(people, name));
}

function ownerOf({ user, spec: { project } }: Job): JobOwner {
  return { user, project };
}
