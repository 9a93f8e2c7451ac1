/** The jobs of an array as commands on the whole array need them. */
import { signMarks } from '@muster/common/signText';
import type { JobStateKind } from '@muster/common/states';
import { isTrainingMetricName } from '@muster/common/training';
import type { Cause, JobView, LedgerEntry, PendingReason } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { byMetric } from '../jobs/jobTable.ts';
import { pagesOfJobs } from '../jobs/pages.ts';
import type { ArrayReferent } from '../jobs/reference.ts';
import { nameOf, newestAttempt } from '../jobs/summary.ts';

/** What is kept of each: an array may have 100,000 jobs, and a whole job is some kilobytes. */
export interface Member {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly state: JobStateKind;
  readonly submitSeq: number;
  readonly submittedAtMs: number;
  readonly cause: Cause | null;
  readonly pending: PendingReason | null;
  /** How long its newest attempt has run, or ran, in milliseconds. null: none has run. */
  readonly ranMs: number | null;
  readonly ledger: readonly LedgerEntry[];
  /** What was noticed of its training, such as `NaN`. */
  readonly marks: readonly string[];
}

export function memberOf(job: JobView, nowMs: number): Member {
  const { id, state, submitSeq, submittedAtMs, cause, pending, ledger } = job;
  const attempt = newestAttempt(job);
  const beganMs = attempt?.runningAtMs ?? null;
  const endMs = attempt?.endedAtMs ?? job.endedAtMs ?? nowMs;
  return {
    index: job.array?.index ?? 0,
    id,
    name: nameOf(job),
    state,
    submitSeq,
    submittedAtMs,
    cause,
    pending,
    ledger,
    marks: signMarks(job),
    ranMs: beganMs === null ? null : Math.max(0, endMs - beganMs),
  };
}

/** A requeued job has the index of the one before it, which it replaces. */
export function newestByIndex(members: Iterable<Member>): readonly Member[] {
  const newest = new Map<number, Member>();
  for (const member of members) {
    const known = newest.get(member.index);
    if (known === undefined || known.submitSeq <= member.submitSeq) newest.set(member.index, member);
  }
  return [...newest.values()].toSorted((a, b) => a.index - b.index);
}

/** A whole array, as it was read. */
export interface ArrayJobs {
  /** In the order of their indexes; of an index that was requeued the newest. */
  readonly members: readonly Member[];
  /** Jobs that are queued and not among the members, because the coordinator is still storing them. */
  readonly notStored: number;
}

/** @param onPage with the jobs of each page, and how many were read */
export async function readMembers(
  api: Pick<MusterApi, 'listJobs'>,
  { id: arrayId, size }: Pick<ArrayReferent, 'id' | 'size'>,
  nowMs: number,
  onPage: (jobs: readonly JobView[], read: number) => void = () => {},
): Promise<ArrayJobs> {
  const read: Member[] = [];
  let notStored: number | undefined;
  for await (const page of pagesOfJobs(api, { arrayId }, Number.POSITIVE_INFINITY)) {
    notStored ??= page.notStored;
    for (const job of page.jobs) read.push(memberOf(job, nowMs));
    onPage(page.jobs, read.length);
  }
  const members = newestByIndex(read);
  return { members, notStored: unreadOf(size, members, notStored) };
}

/**
 * How many jobs are queued beside those that were read.
 * @param notStored as it was before the first of them was read: a job that is stored meanwhile is in it, and may be read too
 */
export function unreadOf(size: number, read: readonly Member[], notStored = 0): number {
  return Math.max(0, Math.min(notStored, size - read.length));
}

/** The jobs of an array, page by page; of an index that was requeued the newest. The highest indexes come first. */
async function* newestOfArray(
  api: Pick<MusterApi, 'listJobs'>,
  arrayId: string,
): AsyncGenerator<readonly JobView[]> {
  const seen = new Set<number>();
  for await (const page of pagesOfJobs(api, { arrayId, brief: true }, Number.POSITIVE_INFINITY)) {
    yield page.jobs.filter((job) => {
      const isNewest = !seen.has(indexOf(job));
      seen.add(indexOf(job));
      return isNewest;
    });
  }
}

function indexOf({ array }: JobView): number {
  return array?.index ?? 0;
}

/** The ids of its jobs, in the order of their indexes. */
export async function arrayJobIds(
  api: Pick<MusterApi, 'listJobs'>,
  arrayId: string,
): Promise<readonly string[]> {
  const ids: [index: number, id: string][] = [];
  for await (const jobs of newestOfArray(api, arrayId))
    for (const job of jobs) ids.push([indexOf(job), job.id]);
  return ids.toSorted(([a], [b]) => a - b).map(([, id]) => id);
}

/** Which jobs of many are shown: at most so many, those with the smallest newest value of a metric of the training first. */
export interface Choice {
  readonly metric: string;
  readonly max: number;
}

/** Some jobs, and how many there were to choose from. */
export interface ChosenJobs {
  readonly jobs: readonly JobView[];
  readonly total: number;
}

/**
 * The jobs of an array that the choice is about, in the order of their indexes. The others are not kept: an array may have 100,000.
 */
export async function arrayJobs(
  api: Pick<MusterApi, 'listJobs'>,
  arrayId: string,
  choice: Choice,
): Promise<ChosenJobs> {
  const inOrder = (jobs: readonly JobView[]) => jobs.toSorted((a, b) => indexOf(a) - indexOf(b));
  let kept: readonly JobView[] = [];
  let total = 0;
  for await (const jobs of newestOfArray(api, arrayId)) {
    total += jobs.length;
    kept = chosenOf(inOrder([...kept, ...jobs]), choice);
  }
  return { jobs: inOrder(kept), total };
}

/** @param total how many there were, of which these are left. All of as many as may be shown stay in their order */
function chosenOf(
  jobs: readonly JobView[],
  { metric, max }: Choice,
  total = jobs.length,
): readonly JobView[] {
  if (total <= max) return jobs;
  return (isTrainingMetricName(metric) ? byMetric(jobs, metric) : jobs).slice(0, max);
}

/**
 * @param chosen what `arrayJobs` has left of all jobs
 * @param what is done with them, for the note: `drawn`
 * @returns a note for the reader where some are not among them
 */
export function chosenFor(
  { jobs, total }: ChosenJobs,
  choice: Choice,
  what: string,
): { readonly jobs: readonly JobView[]; readonly note: string | null } {
  const { metric, max } = choice;
  if (total <= max) return { jobs, note: null };
  const which = isTrainingMetricName(metric) ? `those with the smallest newest ${metric}` : 'the first';
  const note = `${max} of ${total} jobs are ${what}: ${which}. -o csv has all.`;
  return { jobs: chosenOf(jobs, choice, total), note };
}
