/** An array in numbers: how many jobs are in which state, and why. `job -o json` and `explain -o json` print it. Pure. */
import { adviceOn } from '@muster/common/causeText';
import { isTerminal, type JobStateKind, jobStates } from '@muster/common/states';
import type { Cause, LedgerEntry, PendingReason } from '@muster/common/views';
import type { ArrayReferent } from '../jobs/reference.ts';
import type { ArrayJobs, Member } from './members.ts';

/** Jobs that ended, failed or are stopped for the same cause. */
export interface CauseGroup {
  readonly kind: Cause['kind'];
  /** Of the first of them. */
  readonly message: string;
  readonly count: number;
  readonly indexes: readonly number[];
}

/** Jobs that wait for the same. */
export interface WaitGroup {
  readonly kind: PendingReason['kind'];
  /** Of the first of them. */
  readonly message: string;
  readonly remedy: string | null;
  readonly count: number;
  readonly indexes: readonly number[];
}

export interface MarkGroup {
  readonly mark: string;
  readonly count: number;
  readonly indexes: readonly number[];
}

export interface LongRun {
  readonly jobId: string;
  readonly index: number;
  readonly name: string;
  readonly state: JobStateKind;
  readonly ranMs: number;
}

export interface ArraySummary {
  readonly array: { readonly id: string; readonly name: string; readonly size: number };
  readonly counts: StateCounts;
  readonly submittedAtMs: number | null;
  /** The commonest first; of jobs that have not succeeded. */
  readonly causes: readonly CauseGroup[];
  /** The commonest first. */
  readonly waits: readonly WaitGroup[];
  readonly marks: readonly MarkGroup[];
  /** Of all jobs together. */
  readonly ledger: readonly LedgerEntry[];
  /** At most five; the longest first. */
  readonly longest: readonly LongRun[];
  /** Advice and commands. */
  readonly nextSteps: readonly string[];
}

const longestMax = 5;
/** Advice on more causes at once is read by nobody. */
const advisedMax = 2;

export function summarizeArray(
  { id, name, size }: ArrayReferent,
  jobs: ArrayJobs,
  programName: string,
): ArraySummary {
  const { members } = jobs;
  const counts = countsOf(jobs);
  const blamed = grouped(members, ({ state, cause }) =>
    cause === null || state === 'succeeded' ? null : `${cause.kind} ${withoutNumbers(cause)}`,
  );
  const waiting = grouped(members, ({ state, pending }) =>
    state === 'queued' && pending !== null ? `${pending.kind} ${withoutNumbers(pending)}` : null,
  );
  const causes = blamed.flatMap(({ first: { cause }, indexes }) =>
    cause === null
      ? []
      : [{ kind: cause.kind, message: cause.message, count: indexes.length, indexes, cause }],
  );
  const waits = waiting.flatMap(({ first: { pending }, indexes }) =>
    pending === null
      ? []
      : [
          {
            kind: pending.kind,
            message: pending.message,
            remedy: pending.remedy,
            count: indexes.length,
            indexes,
          },
        ],
  );
  const marked = members.flatMap((member) => member.marks.map((mark) => ({ ...member, mark })));
  return {
    array: { id, name, size },
    counts,
    submittedAtMs: members.reduce<number | null>(
      (oldest, { submittedAtMs }) => Math.min(oldest ?? submittedAtMs, submittedAtMs),
      null,
    ),
    causes: causes.map(({ cause: _cause, ...group }) => group),
    waits,
    marks: grouped(marked, ({ mark }) => mark).map(({ first: { mark }, indexes }) => ({
      mark,
      count: indexes.length,
      indexes,
    })),
    ledger: together(members.flatMap(({ ledger }) => ledger)),
    longest: longestRuns(members),
    nextSteps: [
      ...new Set([
        ...causes.slice(0, advisedMax).map(({ cause }) => adviceOn(cause)),
        ...waits.slice(0, advisedMax).flatMap(({ remedy }) => remedy ?? []),
        ...commandsFor(id, counts, causes[0]?.indexes[0]).map((words) => `${programName} ${words}`),
      ]),
    ],
  };
}

export type StateCounts = Readonly<Record<JobStateKind, number>>;

export function countsOf({ members, notStored }: ArrayJobs): StateCounts {
  const counts = Object.fromEntries(jobStates.map((state) => [state, 0])) as Record<JobStateKind, number>;
  for (const { state } of members) counts[state] += 1;
  return { ...counts, queued: counts.queued + notStored };
}

/** `3 running, 2 queued, 1 failed`: states in which there is a job. */
export function countsText(counts: StateCounts): string {
  const shown = jobStates.filter((state) => counts[state] > 0);
  return shown.map((state) => `${counts[state]} ${state}`).join(', ');
}

/** What tells one cause from another of its kind, but not one job, rank, node or time from another. */
function withoutNumbers({ message }: { readonly message: string }): string {
  return message.replaceAll(/\bjob_\w+/g, 'job').replaceAll(/(?<!code \d*)\d+(?:\.\d+)?/g, '#');
}

/** The largest groups first. @param keyOf null: in no group */
function grouped<Each extends Pick<Member, 'index'>>(
  members: readonly Each[],
  keyOf: (member: Each) => string | null,
): readonly { readonly first: Each; readonly indexes: readonly number[] }[] {
  const groups = new Map<string, { readonly first: Each; readonly indexes: number[] }>();
  for (const member of members) {
    const key = keyOf(member);
    if (key === null) continue;
    const group = groups.get(key) ?? { first: member, indexes: [] };
    group.indexes.push(member.index);
    groups.set(key, group);
  }
  return [...groups.values()].toSorted((a, b) => b.indexes.length - a.indexes.length);
}

function together(ledger: readonly LedgerEntry[]): readonly LedgerEntry[] {
  const sums = new Map<string, LedgerEntry>();
  for (const { kind, cause, gpuSeconds } of ledger) {
    const key = `${kind} ${cause ?? ''}`;
    sums.set(key, { kind, cause, gpuSeconds: (sums.get(key)?.gpuSeconds ?? 0) + gpuSeconds });
  }
  return [...sums.values()];
}

function longestRuns(members: readonly Member[]): readonly LongRun[] {
  return members
    .flatMap(({ id: jobId, index, name, state, ranMs }) =>
      ranMs === null ? [] : [{ jobId, index, name, state, ranMs }],
    )
    .toSorted((a, b) => b.ranMs - a.ranMs)
    .slice(0, longestMax);
}

function commandsFor(id: string, counts: StateCounts, failedIndex: number | undefined): readonly string[] {
  const isActive = jobStates.some((state) => !isTerminal(state) && counts[state] > 0);
  const words = [
    failedIndex === undefined ? null : `logs '${id}[${failedIndex}]'`,
    counts.failed + counts.cancelled > 0 ? `requeue ${id}` : null,
    counts.running > 0 ? `logs -f ${id}` : null,
    isActive ? `stop ${id}` : null,
  ];
  return words.filter((word) => word !== null);
}
