/** What a job has from the one that it runs again, or that it was asked to continue from. */
import { posix } from 'node:path';
import { type Checkpoint, elsewhere, type ResumeChoice } from '@muster/common/checkpoints';
import { MusterError } from '@muster/common/errors';
import type { JobSpec } from '@muster/common/spec/types';
import { isTerminal } from '@muster/common/states';
import { resumeCandidates } from '../lifecycle/resume.ts';
import { type Job, lineageMax } from '../model.ts';
import { ownSpec } from '../spec/ownSpec.ts';
import { directoryOf } from '../state/jobDirectories.ts';
import type { Draft } from '../state/state.ts';

export type Heritage = Partial<
  Pick<Job, 'checkpoints' | 'checkpointJobId' | 'resumeChoice' | 'lineage' | 'resumedFrom'>
>;

/** A job that has ended, or is only read from. */
export type Predecessor = Pick<
  Job,
  'id' | 'spec' | 'array' | 'state' | 'checkpoints' | 'checkpointJobId' | 'lineage'
>;

/** A job has ended since it was read, and may have saved more: it has to be read again before the command is repeated. */
export class EndedMeanwhile extends Error {}

/** @throws {EndedMeanwhile} of a job that the draft has no more, though it had not ended when it was read */
export function requireNewest(draft: Draft, { id, state }: Pick<Predecessor, 'id' | 'state'>): void {
  if (draft.job(id) === undefined && !isTerminal(state.kind))
    throw new EndedMeanwhile(`${id} has ended since it was read`);
}

/** The new one. */
export type Successor = Pick<Job, 'spec' | 'array'>;

/**
 * @param successor In the directory of its predecessor it goes on with its checkpoints; in another one it begins from
 *   them where they are, and saves its own
 * @throws {MusterError} `failed_precondition` when an active job goes on with them already, or the new one cannot read them
 */
export function heritageOf(
  draft: Draft,
  predecessor: Predecessor,
  successor: Successor,
  from: ResumeChoice,
): Heritage {
  const { checkpoints, checkpointJobId } = predecessor;
  const isSamePlace = placeOf(predecessor) !== null && placeOf(predecessor) === placeOf(successor);
  // With nothing to go on from it is a job like any other. Where its spec names a directory, it begins anew in that one.
  if (checkpoints.length === 0 || from.kind === 'start') {
    return isSamePlace ? { lineage: [...predecessor.lineage, checkpointJobId].slice(-lineageMax) } : {};
  }
  if (isSamePlace) requireSoleHeir(draft, predecessor);
  const inherited = isSamePlace
    ? // Numbers of attempts begin anew, and whatever the new job saves is newer.
      {
        checkpoints: checkpoints.map((each) => ({ ...each, attempt: 0 })),
        ...{ checkpointJobId, lineage: predecessor.lineage },
      }
    : { checkpoints: readElsewhere(predecessor, successor) };
  const [best] = resumeCandidates({ checkpoints: inherited.checkpoints, resumeChoice: from });
  const resumedFrom = best === undefined ? null : { jobId: predecessor.id, name: best.name, step: best.step };
  return { ...inherited, resumeChoice: from, resumedFrom };
}

/**
 * The same, for a job whose user insists on continuing.
 * @throws {MusterError} `failed_precondition` also when there is nothing to continue from
 * @throws {EndedMeanwhile}
 */
export function continuationOf(draft: Draft, predecessor: Predecessor, spec: JobSpec): Heritage {
  const successor = { spec, array: null };
  const { id } = predecessor;
  requireNewest(draft, predecessor);
  const active = draft.job(id);
  if (active !== undefined && placeOf(active) === placeOf(successor)) {
    throw new MusterError(
      'failed_precondition',
      `${id} is ${active.state.kind} and saves its checkpoints in the same directory; wait until it has ended ` +
        `(muster stop ${id} ends it), or give this job another checkpoint.dir`,
    );
  }
  const heritage = heritageOf(draft, active ?? predecessor, successor, { kind: 'newest' });
  if (heritage.resumedFrom != null) return heritage;
  throw new MusterError(
    'failed_precondition',
    `${id} has no verified checkpoint to continue from; \`muster checkpoints ${id}\` lists what it has saved`,
  );
}

/** @param path absolute, as the job sees it */
export function continuationAt(path: string): Heritage {
  const { base: name } = posix.parse(path);
  const step = /(\d+)(?:\.[a-z0-9_]+)*$/i.exec(name)?.[1];
  const checkpoint: Checkpoint = {
    ...{ name: path, version: '', step: step === undefined ? null : Number(step), format: 'unknown' },
    ...{ bytes: 0, files: 0, savedAtMs: 0, saveDurationMs: null, metrics: {}, digest: null },
    // Its user vouches for it; the agent looks at it before anything runs.
    ...{ verdict: 'verified', depth: null, problem: null, reread: false },
    ...{ attempt: 0, node: '', shared: true, suspect: false },
  };
  return {
    checkpoints: [checkpoint],
    resumedFrom: { jobId: null, name: path, step: checkpoint.step },
  };
}

/** Equal for jobs that save in one directory. null: it keeps none. */
function placeOf(job: Successor): string | null {
  const { checkpoint, image } = job.spec;
  return checkpoint.dir === null && image === null ? 'kept by the node' : directoryOf(job);
}

/** The good ones, by names that lead to where they are. */
function readElsewhere(predecessor: Predecessor, to: Successor): readonly Checkpoint[] {
  const { id, spec, checkpoints, checkpointJobId } = predecessor;
  const { dir } = ownSpec(predecessor).checkpoint;
  const isReadable = (spec.image === null) === (to.spec.image === null);
  if (!isReadable) {
    throw new MusterError(
      'failed_precondition',
      `${id} and this job do not see the same files, for only one of them runs in a container: continue from the path that ` +
        'this job sees, --resume-from /path/to/checkpoint',
    );
  }
  const leadingTo = (name: string) => {
    if (elsewhere(name) !== null) return name;
    return dir === null ? `${checkpointJobId}/${name}` : posix.join(dir, name);
  };
  const good = checkpoints.filter(({ verdict, suspect }) => verdict === 'verified' && !suspect);
  return good.map((each) => ({ ...each, attempt: 0, name: leadingTo(each.name) }));
}

/** Two that save into one directory would resume from, and delete, each other's checkpoints. */
function requireSoleHeir(draft: Draft, { id, checkpointJobId }: Predecessor): void {
  for (const other of draft.activeJobs()) {
    if (other.checkpointJobId !== checkpointJobId) continue;
    throw new MusterError(
      'failed_precondition',
      `${other.id} continues from the checkpoints of ${id} already; stop it first, or start from scratch: ` +
        `muster requeue ${id} --from start`,
    );
  }
}
