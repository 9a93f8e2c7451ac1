/** Lists of jobs in the embedded store: which they are and in which order; their rows are read elsewhere. */
import type { SQLInputValue } from 'node:sqlite';
import type { JobId } from '@muster/common/ids';
import { type JobStateKind, jobStates } from '@muster/common/states';
import { nextRound } from '../../rounds.ts';
import { selectCandidates, selectFirstSince, selectMatching } from '../statements/selectFiltered.ts';
import { selectListedIds } from '../statements/selectJobs.ts';
import type { JobFilters, JobQuery, ListedJobId } from '../store.ts';

type Parameters = Record<string, SQLInputValue>;
type Rows = <Row>(sql: string, parameters: Parameters) => Row[];
type ListQuery = Omit<JobQuery, 'sizeMax'>;
interface IdRow {
  readonly id: JobId;
  readonly submit_seq: number;
}

/** Looked at between two rounds of the event loop, where not all of them match. */
const candidatesPerRound = 500;

/** @param rows the store's own way to run a statement */
export async function listedIds(rows: Rows, query: ListQuery): Promise<readonly ListedJobId[]> {
  const { also = {} } = query;
  const isPlain = Object.values(also).every((each) => each === undefined);
  const found = isPlain ? byIndex(rows, query) : await byFilters(rows, query, also);
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
  return found.sort((a, b) => b.submit_seq - a.submit_seq).slice(0, limit);
}

async function byFilters(rows: Rows, query: ListQuery, also: JobFilters): Promise<readonly IdRow[]> {
  const { arrayId, name, states, limit } = query;
  const { label, project, user, sinceMs } = also;
  let fromSeq = 0;
  if (sinceMs !== undefined) {
    const [first] = rows<{ submit_seq: number }>(selectFirstSince.sql, { since_ms: sinceMs });
    if (first === undefined) return [];
    fromSeq = first.submit_seq;
  }
  const source =
    arrayId !== null
      ? 'array'
      : label !== undefined
        ? labelSource(label)
        : project !== undefined
          ? 'project'
          : user !== undefined
            ? 'user'
            : 'all';
  const labelParameters = label === undefined ? {} : { label_name: label.name };
  const valueParameters = label?.value == null ? {} : { label_value: label.value };
  const matching = selectMatching(also, name !== null, states.length > 0);
  const rest = {
    ...(name === null ? {} : { name }),
    ...(states.length === 0 ? {} : { states: JSON.stringify(states) }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { submitter: user }),
    ...(sinceMs === undefined ? {} : { since_ms: sinceMs }),
    ...labelParameters,
    ...valueParameters,
  };
  const found: IdRow[] = [];
  let before = query.beforeSubmitSeq ?? Number.MAX_SAFE_INTEGER;
  while (found.length < limit) {
    const candidates = rows<IdRow>(selectCandidates[source], {
      ...{ before, from_seq: fromSeq, limit: candidatesPerRound },
      ...(source === 'array' ? { array_id: arrayId } : {}),
      ...(source === 'label' ? { ...labelParameters, ...valueParameters } : {}),
      ...(source === 'labelName' ? labelParameters : {}),
      ...(source === 'project' && project !== undefined ? { project } : {}),
      ...(source === 'user' && user !== undefined ? { submitter: user } : {}),
    });
    const last = candidates.at(-1);
    if (last === undefined) break;
    const ids = JSON.stringify(candidates.map(({ id }) => id));
    found.push(...rows<IdRow>(matching, { ids, ...rest }));
    if (candidates.length < candidatesPerRound) break;
    before = last.submit_seq;
    await nextRound();
  }
  return found.sort((a, b) => b.submit_seq - a.submit_seq).slice(0, limit);
}

function labelSource({ value }: NonNullable<JobFilters['label']>): 'label' | 'labelName' {
  return value === null ? 'labelName' : 'label';
}
