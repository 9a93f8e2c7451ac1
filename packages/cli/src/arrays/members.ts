/** The jobs of an array as commands on the whole array need them. */
import { signMarks } from '@muster/common/signText';
import type { JobStateKind } from '@muster/common/states';
import { isTrainingMetricName } from '@muster/common/training';
import type { Cause, JobView, LedgerEntry, PendingReason } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { byMetric } from '../jobs/jobTable.ts';
import { collectJobs, pagesOfJobs } from '../jobs/pages.ts';
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

/** In the order of their indexes; of an index that was requeued the newest. */
export async function arrayJobs(
  api: Pick<MusterApi, 'listJobs'>,
  arrayId: string,
): Promise<readonly JobView[]> {
  const { jobs } = await collectJobs(api, { arrayId, brief: true }, Number.POSITIVE_INFINITY);
  const newest = new Map<number, JobView>();
  // The newest come first.
  for (const job of jobs) {
    const index = job.array?.index ?? 0;
    if (!newest.has(index)) newest.set(index, job);
  }
  return [...newest].toSorted(([a], [b]) => a - b).map(([, job]) => job);
}

/**
 * At most so many of the jobs: those with the smallest newest value, as far as it is known.
 * @param what is done with them, for the note: `drawn`
 * @returns a note for the reader where some are not among them
 */
export function chosenFor(
  jobs: readonly JobView[],
  metric: string,
  max: number,
  what: string,
): { readonly jobs: readonly JobView[]; readonly note: string | null } {
  if (jobs.length <= max) return { jobs, note: null };
  const isSorted = isTrainingMetricName(metric);
  const chosen = (isSorted ? byMetric(jobs, metric) : jobs).slice(0, max);
  const which = isSorted ? `those with the smallest newest ${metric}` : 'the first';
  return { jobs: chosen, note: `${max} of ${jobs.length} jobs are ${what}: ${which}. -o csv has all.` };
}
