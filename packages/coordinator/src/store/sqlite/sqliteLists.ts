/** Lists of jobs in the embedded store: which they are and in which order; their rows are read elsewhere. */

import type { SQLInputValue } from 'node:sqlite';
import type { ArrayId, JobId } from '@muster/common/ids';
import { type JobStateKind, jobStates } from '@muster/common/states';
import { nextRound } from '../../work/inOrder.ts';
import { selectJobIds, selectListedIds } from '../statements/jobs.ts';
import {
  selectCandidates,
  selectFirstSince,
  selectMatching,
  selectMatchingInOrder,
  selectMember,
  selectNewestArray,
  selectNewestBelow,
  selectNextArrayId,
  selectNextName,
} from '../statements/lists.ts';
import type { JobFilters, JobQuery, ListedJobId, NameStore } from '../store.ts';

type Parameters = Record<string, SQLInputValue>;
type Rows = <Row>(sql: string, parameters: Parameters) => Row[];
type ListQuery = Omit<JobQuery, 'sizeMax'>;
interface IdRow {
  readonly id: JobId;
  readonly submit_seq: number;
}

/** What is looked at between two rounds of the event loop. */
export interface ListSteps {
  /** Jobs that an index gives, each of which is then looked up. */
  readonly candidates: number;
  /** Numbers of jobs that are read one after the other. */
  readonly numbers: number;
}

const usualSteps: ListSteps = { candidates: 1_000, numbers: 20_000 };
/** An index is read further as long as one in `usefulShare` of its jobs passes the other filters. */
const usefulShare = 10;

/** @param rows runs a statement in the store */
export async function listedIds(
  rows: Rows,
  query: ListQuery,
  steps: ListSteps = usualSteps,
): Promise<readonly ListedJobId[]> {
  const { also = {}, arrayId, name } = query;
  const isPlain = Object.values(also).every((each) => each === undefined);
  // No index has both: the jobs of an array are looked at by row, some at a time.
  const isIndexed = isPlain && (arrayId === null || name === null);
  const found = isIndexed ? byIndex(rows, query) : await byFilters(rows, query, also, steps);
  return found.map((row) => ({ id: row.id, submitSeq: row.submit_seq }));
}

function byIndex(rows: Rows, { states, arrayId, name, limit, beforeSubmitSeq }: ListQuery): readonly IdRow[] {
  const isNarrowed = arrayId !== null || name !== null;
  // The indexes of names and arrays are in order within a state only.
  const wanted: readonly (JobStateKind | null)[] =
    states.length > 0 ? [...new Set(states)] : isNarrowed ? jobStates : [null];
  const found = wanted.flatMap((state) => {
    const filter = { byArray: arrayId !== null, byName: name !== null, byState: state !== null };
    return rows<IdRow>(selectListedIds(filter), {
      before: beforeSubmitSeq ?? Number.MAX_SAFE_INTEGER,
      limit,
      ...(arrayId === null ? {} : { array_id: arrayId }),
      ...(name === null ? {} : { name }),
      ...(state === null ? {} : { state }),
    });
  });
  return newestOf(found, limit);
}

/** The matching jobs from `before` on, which is not among them; `isAll`: the search is complete. */
interface Progress {
  readonly found: readonly IdRow[];
  readonly before: number;
  readonly isAll: boolean;
}

/**
 * Each index that a filter has is asked for its newest jobs: one that gives few, or of whose jobs many match, answers at once,
 * and which one that is cannot be known before. Where none does, all jobs are looked at in order, in an index that holds no more
 * than what they are filtered by. So the cost is bounded by the number of jobs, whatever is asked for.
 */
async function byFilters(
  rows: Rows,
  query: ListQuery,
  also: JobFilters,
  steps: ListSteps,
): Promise<readonly IdRow[]> {
  const { limit } = query;
  const fromSeq = firstNumber(rows, also);
  if (fromSeq === null) return [];
  const parameters = parametersOf(query, also);
  const filter = { byName: query.name !== null, byState: query.states.length > 0, also };
  const matching = selectMatching(filter);
  const start = query.beforeSubmitSeq ?? Number.MAX_SAFE_INTEGER;

  /** @param isFollowed to its end, however few of its jobs match */
  async function byCandidates(source: Source, isFollowed: boolean): Promise<Progress> {
    const found: IdRow[] = [];
    let before = start;
    for (;;) {
      const candidates = source(before, fromSeq ?? 0);
      const seqs = JSON.stringify(candidates.map((row) => row.submit_seq));
      const matches = candidates.length === 0 ? [] : rows<IdRow>(matching, { seqs, ...parameters });
      found.push(...matches);
      before = candidates.at(-1)?.submit_seq ?? before;
      if (candidates.length < steps.candidates || found.length >= limit)
        return { found, before, isAll: true };
      if (!isFollowed && matches.length * usefulShare < candidates.length)
        return { found, before, isAll: false };
      await nextRound();
    }
  }

  async function inOrder({ found: earlier, before: from }: Progress): Promise<readonly IdRow[]> {
    const found = [...earlier];
    const sql = selectMatchingInOrder(filter);
    for (let before = from; found.length < limit; ) {
      const below = { before, from_seq: fromSeq };
      const [newest] = rows<{ submit_seq: number }>(selectNewestBelow.sql, below);
      if (newest === undefined) break;
      const first = Math.max(fromSeq ?? 0, newest.submit_seq - steps.numbers + 1);
      found.push(
        ...rows<IdRow>(sql, { ...parameters, before, from_seq: first, limit: limit - found.length }),
      );
      before = first;
      await nextRound();
    }
    return found;
  }

  const { arrayId } = query;
  let furthest: Progress = { found: [], before: start, isAll: false };
  const sources =
    arrayId === null ? sourcesOf(rows, query, also, steps) : [ofArray(rows, arrayId, steps.candidates)];
  for (const source of sources) {
    const progress = await byCandidates(source, arrayId !== null);
    if (progress.isAll) return newestOf(progress.found, limit);
    if (progress.before < furthest.before) furthest = progress;
    await nextRound();
  }
  return newestOf(await inOrder(furthest), limit);
}

/** @returns null: no job was submitted since then */
function firstNumber(rows: Rows, { sinceMs }: JobFilters): number | null {
  if (sinceMs === undefined) return 0;
  return rows<{ submit_seq: number }>(selectFirstSince.sql, { since_ms: sinceMs })[0]?.submit_seq ?? null;
}

/** What the conditions of a statement need. */
function parametersOf(
  { name, states }: ListQuery,
  { label, project, user, sinceMs, visible }: JobFilters,
): Parameters {
  return {
    ...(name === null ? {} : { name }),
    ...(states.length === 0 ? {} : { states: JSON.stringify(states) }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { submitter: user }),
    ...(sinceMs === undefined ? {} : { since_ms: sinceMs }),
    ...visibleParameters(visible),
    ...labelParameters(label),
  };
}

function visibleParameters(visible: JobFilters['visible']): Parameters {
  if (visible === undefined) return {};
  const { user, hiddenProjects, onlyProjects } = visible;
  return {
    viewer: user,
    hidden_projects: JSON.stringify(hiddenProjects),
    ...(onlyProjects === null ? {} : { only_projects: JSON.stringify(onlyProjects) }),
  };
}

function labelParameters(label: JobFilters['label']): Parameters {
  if (label === undefined) return {};
  return { label_name: label.name, ...(label.value === null ? {} : { label_value: label.value }) };
}

/** Jobs that pass one of the filters, the newest first: those with a number below `before`, and not below `fromSeq`. */
type Source = (before: number, fromSeq: number) => readonly IdRow[];

function ofArray(rows: Rows, arrayId: string, limit: number): Source {
  return (before, fromSeq) =>
    rows<IdRow>(selectCandidates.array, { before, from_seq: fromSeq, limit, array_id: arrayId });
}

function sourcesOf(
  rows: Rows,
  query: ListQuery,
  { label, project, user }: JobFilters,
  { candidates: limit }: ListSteps,
): readonly Source[] {
  const range = (before: number, fromSeq: number) => ({ before, from_seq: fromSeq, limit });
  const labelled = label?.value == null ? selectCandidates.labelName : selectCandidates.label;
  const isIndexed = query.name !== null || query.states.length > 0;
  return [
    ...(label === undefined
      ? []
      : [
          (before: number, fromSeq: number) =>
            rows<IdRow>(labelled, { ...range(before, fromSeq), ...labelParameters(label) }),
        ]),
    ...(project === undefined
      ? []
      : [
          (before: number, fromSeq: number) =>
            rows<IdRow>(selectCandidates.project, { ...range(before, fromSeq), project }),
        ]),
    ...(user === undefined
      ? []
      : [
          (before: number, fromSeq: number) =>
            rows<IdRow>(selectCandidates.user, { ...range(before, fromSeq), submitter: user }),
        ]),
    // By name, by state or by both.
    ...(isIndexed
      ? [
          (before: number, fromSeq: number) =>
            byIndex(rows, { ...query, limit, beforeSubmitSeq: before }).filter(
              (row) => row.submit_seq >= fromSeq,
            ),
        ]
      : []),
  ];
}

function newestOf(found: readonly IdRow[], limit: number): readonly IdRow[] {
  return found.toSorted((a, b) => b.submit_seq - a.submit_seq).slice(0, limit);
}

/** @param rows runs a statement in the store */
export function sqliteNames(
  rows: <Row>(sql: string, parameters: Record<string, SQLInputValue>) => Row[],
): NameStore {
  /** Distinct values that begin with `prefix`, one look-up in an index for each. */
  function distinct(sql: string, prefix: string, limit: number): readonly string[] {
    const found: string[] = [];
    while (found.length < limit) {
      const [row] = rows<{ value: string }>(sql, { from: prefix, after: found.at(-1) ?? '' });
      if (row === undefined || !row.value.startsWith(prefix)) break;
      found.push(row.value);
    }
    return found;
  }

  return {
    async jobIds(prefix, limit) {
      const range = { from: prefix, to: `${prefix}\u{10ffff}`, limit };
      return rows<{ id: JobId }>(selectJobIds.sql, range).map((row) => row.id);
    },
    async arrayIds(prefix, limit) {
      return distinct(selectNextArrayId.sql, prefix, limit) as readonly ArrayId[];
    },
    async names(prefix, limit) {
      return distinct(selectNextName.sql, prefix, limit);
    },
    async newestArray(name) {
      return rows<{ array_id: ArrayId }>(selectNewestArray.sql, { name })[0]?.array_id ?? null;
    },
    async member(arrayId, index) {
      const wanted = { array_id: arrayId, array_index: index };
      return rows<{ id: JobId }>(selectMember.sql, wanted)[0]?.id ?? null;
    },
  };
}

/** It may have changed its state since it was found. */
export function isWanted(
  { states }: Pick<JobQuery, 'states'>,
  { state }: { readonly state: string },
): boolean {
  return states.length === 0 || states.some((each) => each === state);
}
