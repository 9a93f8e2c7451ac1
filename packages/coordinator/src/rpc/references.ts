/**
 * What a user may call a job by: an id, the unique beginning of one, a name, `NAME[3]`, an array's id, `ARRAY[3]` or
 * `latest`. One place for every call, so that a reference means the same everywhere.
 *
 * A name, and `latest`, mean the newest submission: a job, or a whole array. Jobs that the caller may not see do not exist for them,
 * and one that a call may not change is refused: no call comes to a job but through here.
 */
import { MusterError } from '@muster/common/errors';
import { type ArrayId, isArrayId, isJobId, type JobId } from '@muster/common/ids';
import { formatDependency, parseDependency } from '@muster/common/spec/after';
import { indexPlaceholder } from '@muster/common/spec/arrayIndex';
import { closest } from '@muster/common/spec/suggest';
import type { JobSpec } from '@muster/common/spec/types';
import type { Identity } from '../caller.ts';
import { isGood } from '../lifecycle/resume.ts';
import type { Job } from '../model.ts';
import type { ArrayFiller } from '../reconcilers/arrayFiller.ts';
import { learnOutcomes } from '../state/endedJobs.ts';
import type { ClusterState } from '../state/state.ts';
import type { JobRecord, Store } from '../store/store.ts';
import { asReader, mayUseJob, visibleTo } from './visibleJobs.ts';

export interface ReferenceParts {
  readonly state: Pick<ClusterState, 'jobs' | 'outcomes' | 'people'>;
  readonly store: Pick<Store, 'readJob' | 'readOutcomes' | 'listJobs' | 'listJobIds' | 'names'>;
  readonly arrays: Pick<ArrayFiller, 'complete' | 'member'>;
}

export type Referent =
  | { readonly kind: 'job'; readonly id: JobId }
  | { readonly kind: 'array'; readonly id: ArrayId; readonly name: string; readonly size: number };

const prefixLengthMin = 6;
/** Of names that begin as what was typed does, among which the one that was meant is looked for. */
const similarNamesMax = 500;
const typedLengthMax = 100;

/**
 * @throws {MusterError} `not_found` when nothing has this name or id, with the most similar name; `invalid` when it
 *   is the beginning of several ids
 */
export async function resolveReference(
  parts: ReferenceParts,
  text: string,
  caller: Identity,
): Promise<Referent> {
  const referent = await referentOf(parts, text, caller);
  if (referent.kind === 'job' && !(await mayUseJob(parts, caller, referent.id))) throw unknownJob(text);
  return referent;
}

async function referentOf(parts: ReferenceParts, text: string, caller: Identity): Promise<Referent> {
  const member = /^(.+)\[(\d{1,9})\]$/.exec(text);
  const [, base, index] = member ?? [];
  if (base !== undefined && index !== undefined) return resolveMember(parts, base, Number(index), caller);
  if (text.startsWith('job_')) return { kind: 'job', id: await jobIdOf(parts, text) };
  if (text.startsWith('arr_')) return arrayOf(parts, await arrayIdOf(parts, text), caller);
  return newestNamed(parts, text, caller);
}

/**
 * @throws {MusterError} as `resolveReference`, and `invalid` for an array of several jobs: it shows how to name one of them
 */
export async function resolveJobId(parts: ReferenceParts, text: string, caller: Identity): Promise<JobId> {
  const referent = await resolveReference(parts, text, caller);
  if (referent.kind === 'job') return referent.id;
  const { id, name, size } = referent;
  const first = await newestOfArray(parts, id, caller);
  if (size === 1 && first !== null && (await mayUseJob(parts, caller, first.job.id))) return first.job.id;
  // A name with an index in it is that of one job already.
  const base = name.includes(indexPlaceholder) ? id : name;
  throw new MusterError(
    'invalid',
    `${text} is an array of ${size} jobs, but one job is needed: give its index, such as ` +
      `"${base}[${first?.job.array?.index ?? 0}]"; \`muster jobs --array ${id}\` lists them`,
  );
}

/** The array that a reference names, or that the job belongs to which it names. */
export async function resolveArrayId(
  parts: ReferenceParts,
  text: string,
  caller: Identity,
): Promise<ArrayId> {
  if (!/[_[]/.test(text) && text !== 'latest') {
    const newest = await parts.store.names.newestArray(text);
    if (newest !== null && (await newestOfArray(parts, newest, caller)) !== null) return newest;
  }
  const referent = await resolveReference(parts, text, asReader(caller));
  if (referent.kind === 'array') return referent.id;
  const record = await parts.store.readJob(referent.id);
  if (record?.job.array != null) return record.job.array.id;
  throw new MusterError('invalid', `${text} is a single job, not an array`);
}

/** Those of its jobs that have not ended; of a single job that one, whatever its state. */
export async function resolveActiveJobs(
  parts: ReferenceParts,
  text: string,
  caller: Identity,
): Promise<readonly JobId[]> {
  const referent = await resolveReference(parts, text, caller);
  if (referent.kind === 'job') return [referent.id];
  await parts.arrays.complete(referent.id);
  const active: JobId[] = [];
  for (const job of parts.state.jobs.values()) if (job.array?.id === referent.id) active.push(job.id);
  for (const id of active) if (!(await mayUseJob(parts, caller, id))) throw unknownJob(id);
  return active;
}

async function resolveMember(
  parts: ReferenceParts,
  base: string,
  index: number,
  caller: Identity,
): Promise<Referent> {
  const arrayId = await resolveArrayId(parts, base, caller);
  await parts.arrays.member(arrayId, index);
  const id = await parts.store.names.member(arrayId, index);
  if (id !== null) return { kind: 'job', id };
  const newest = await newestOfArray(parts, arrayId, caller);
  throw new MusterError(
    'not_found',
    `no job ${base}[${index}]: ${arrayId} has ${newest?.job.array?.size ?? 0} jobs; \`muster jobs --array ${arrayId}\` lists them`,
  );
}

async function jobIdOf({ state, store }: ReferenceParts, text: string): Promise<JobId> {
  if (isJobId(text)) {
    await learnOutcomes(state, store, [text]);
    if (state.outcomes.get(text) === 'removed') throw removedJob(text);
    if (state.jobs.has(text) || state.outcomes.has(text)) return text;
    throw unknownJob(text);
  }
  requireLongEnough(text, 'a job id');
  return theOnly(await store.names.jobIds(text, 3), text) ?? raise(unknownJob(text));
}

async function arrayIdOf({ store }: ReferenceParts, text: string): Promise<ArrayId> {
  if (isArrayId(text)) return text;
  requireLongEnough(text, 'an array id');
  return theOnly(await store.names.arrayIds(text, 3), text) ?? raise(unknownArray(text));
}

function requireLongEnough(text: string, what: string): void {
  if (text.length >= prefixLengthMin) return;
  throw new MusterError('invalid', `${text}: give at least ${prefixLengthMin} characters of ${what}`);
}

/** @throws {MusterError} `invalid` when there are several */
function theOnly<Id extends string>(found: readonly Id[], text: string): Id | null {
  if (found.length <= 1) return found[0] ?? null;
  const more = found.length > 2 ? ' and more' : '';
  throw new MusterError(
    'invalid',
    `${text} is ambiguous (${found.slice(0, 2).join(', ')}${more}): type more of the id`,
  );
}

async function newestNamed(parts: ReferenceParts, text: string, caller: Identity): Promise<Referent> {
  const { store } = parts;
  const isLatest = text === 'latest';
  const also = { visible: visibleTo(parts.state, caller) };
  const query = { ...anyJob, name: isLatest ? null : text, limit: 1, also };
  const [newest] = await store.listJobIds(query);
  if (newest === undefined)
    throw isLatest
      ? new MusterError('not_found', 'there is no job yet; submit one with `muster submit -- COMMAND`')
      : await unknownName(parts, text, caller);
  const job = parts.state.jobs.get(newest.id) ?? (await store.readJob(newest.id))?.job;
  // A name that has its index in it is that of one job.
  const isOne = job?.array == null || (!isLatest && job.spec.name.includes(indexPlaceholder));
  return isOne ? { kind: 'job', id: newest.id } : arrayOf(parts, job.array.id, caller);
}

/** Of the jobs of one name, how many are looked at. */
const namesakesMax = 20;

/**
 * A name means the newest submission, which may have been refused before it could save. @returns the newest earlier job of its name
 * and project with a checkpoint to continue from; null: there is none near, or the job itself has one
 */
export async function earlierWithCheckpoint(
  { state, store }: ReferenceParts,
  job: Job,
  caller: Identity,
): Promise<JobId | null> {
  if (job.checkpoints.some(isGood)) return null;
  const also = { visible: visibleTo(state, caller) };
  const query = { ...anyJob, name: job.spec.name, beforeSubmitSeq: job.submitSeq, limit: namesakesMax, also };
  for (const { id } of await store.listJobIds(query)) {
    const earlier = (await store.readJob(id))?.job;
    if (earlier?.spec.project === job.spec.project && earlier.checkpoints.some(isGood)) return id;
  }
  return null;
}

export const anyJob = { states: [], arrayId: null, name: null, beforeSubmitSeq: null } as const;

/** @throws {MusterError} `not_found` */
async function arrayOf(parts: ReferenceParts, id: ArrayId, caller: Identity): Promise<Referent> {
  const newest = await newestOfArray(parts, id, caller);
  if (newest === null) throw unknownArray(id);
  const { array } = newest.job;
  return { kind: 'array', id, name: newest.job.spec.name, size: array?.size ?? 0 };
}

/** @returns null: none is visible to the caller */
async function newestOfArray(
  { state, store }: ReferenceParts,
  arrayId: ArrayId,
  caller: Identity,
): Promise<JobRecord | null> {
  const also = { visible: visibleTo(state, caller) };
  const page = await store.listJobs({ ...anyJob, arrayId, limit: 1, sizeMax: 0, also });
  return page.records[0] ?? null;
}

async function unknownName(
  { state, store }: ReferenceParts,
  text: string,
  caller: Identity,
): Promise<MusterError> {
  const typed = text.length > typedLengthMax ? `${text.slice(0, typedLengthMax)} …` : text;
  // Names of jobs that the caller may not see are among them.
  const isNarrowed = visibleTo(state, caller) !== undefined;
  const similar = text === '' || isNarrowed ? [] : await store.names.names(text.slice(0, 1), similarNamesMax);
  const meant = closest(typed, similar);
  const hint = meant === null ? '' : `; did you mean "${meant}"?`;
  return new MusterError('not_found', `no job named "${typed}"${hint || '; `muster jobs --all` lists them'}`);
}

function removedJob(id: JobId): MusterError {
  return new MusterError(
    'not_found',
    `${id} has ended and was removed by retention: the coordinator keeps ended jobs for --keep-jobs, and at most --keep-jobs-max`,
  );
}

export function unknownJob(text: string): MusterError {
  return new MusterError('not_found', `there is no job ${text}; \`muster jobs --all\` lists them`);
}

function unknownArray(text: string): MusterError {
  return new MusterError('not_found', `there is no array ${text}; \`muster jobs --all\` lists jobs`);
}

function raise(error: MusterError): never {
  throw error;
}

/**
 * What a job comes after, by ids: a name means what it means now.
 * @throws {MusterError} as `resolveReference`
 */
export async function resolveAfter(parts: ReferenceParts, spec: JobSpec, caller: Identity): Promise<JobSpec> {
  if (spec.after.length === 0) return spec;
  const after = await Promise.all(
    spec.after.map(async (text) => {
      const { on, when } = parseDependency(text);
      try {
        return formatDependency({ on: (await resolveReference(parts, on, asReader(caller))).id, when });
      } catch (error) {
        throw error instanceof MusterError ? new MusterError(error.code, `after: ${error.message}`) : error;
      }
    }),
  );
  return { ...spec, after: [...new Set(after)] };
}
