/** Derives the checkpoints that a job inherits from the job that it runs again, or that it continues from. */
import { posix } from 'node:path';
import {
  type Checkpoint,
  externalCheckpoint,
  nameBeforeSetAside,
  type ResumeChoice,
} from '@muster/common/checkpoints';
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import { isTerminal } from '@muster/common/states';
import { inheritedPhase, startAt } from '../lifecycle/phases.ts';
import { isGood, resumeCandidates } from '../lifecycle/resume.ts';
import { type Job, lineageMax } from '../model.ts';
import { ownSpec } from '../spec/ownSpec.ts';
import { directoryOf } from '../state/jobDirectories.ts';
import type { Draft } from '../state/state.ts';

/** The fields of a new job that come from its predecessor. */
export type InheritedCheckpoints = Partial<
  Pick<Job, 'checkpoints' | 'checkpointJobId' | 'resumeChoice' | 'lineage' | 'resumedFrom' | 'phase'>
>;

/** The job to inherit from. It has ended, or its checkpoints are only read. */
export type Predecessor = Pick<
  Job,
  'id' | 'spec' | 'array' | 'state' | 'checkpoints' | 'checkpointJobId' | 'lineage' | 'phase'
>;

/** The job ended after it was read, and may have saved more. It must be read again before the command is repeated. */
export class EndedMeanwhile extends Error {}

/** @throws {EndedMeanwhile} if the draft no longer has the job, although it had not ended when it was read */
export function requireNewest(draft: Draft, { id, state }: Pick<Predecessor, 'id' | 'state'>): void {
  if (draft.job(id) === undefined && !isTerminal(state.kind))
    throw new EndedMeanwhile(`${id} has ended since it was read`);
}

/** The new job. */
export type Successor = Pick<Job, 'spec' | 'array'>;

/**
 * The phase too, of a job that has the same phases: it continues in the one that its predecessor was in.
 * @param successor the new job. In the directory of its predecessor it continues the list of checkpoints; in another
 *   directory it begins from them where they are, and saves its own
 * @throws {MusterError} `failed_precondition` if an active job continues from them already, or the new job cannot read them
 */
export function inheritedCheckpointsOf(
  draft: Draft,
  predecessor: Predecessor,
  successor: Successor,
  from: ResumeChoice,
): InheritedCheckpoints {
  const { checkpoints, checkpointJobId } = predecessor;
  const isSamePlace = placeOf(predecessor) !== null && placeOf(predecessor) === placeOf(successor);
  // Without a checkpoint to continue from, the new job starts from scratch. Where its spec names a directory, it does so there.
  if (checkpoints.length === 0 || from.kind === 'start') {
    return isSamePlace ? { lineage: [...predecessor.lineage, checkpointJobId].slice(-lineageMax) } : {};
  }
  if (isSamePlace) requireSoleSuccessor(draft, predecessor);
  const inherited = isSamePlace
    ? // The new job counts its attempts from 1, so attempt 0 is older than each of them.
      {
        checkpoints: checkpoints.map((each) => ({ ...each, attempt: 0 })),
        checkpointJobId,
        lineage: predecessor.lineage,
      }
    : { checkpoints: readFromOutside(predecessor, successor) };
  const [best] = resumeCandidates({ checkpoints: inherited.checkpoints, resumeChoice: from });
  const resumedFrom = best === undefined ? null : { jobId: predecessor.id, name: best.name, step: best.step };
  const { spec } = successor;
  const start = best === undefined ? 0 : startAt(spec, best);
  const phase = inheritedPhase(predecessor, spec, from, start);
  return { ...inherited, resumeChoice: from, resumedFrom, phase };
}

/**
 * The checkpoints of a job whose user asked to continue from `predecessor`.
 * @param earlier a job of the same name that has checkpoints where `predecessor` has none, for the refusal
 * @throws {MusterError} `failed_precondition` as `inheritedCheckpointsOf`, and if there is nothing to continue from
 * @throws {EndedMeanwhile} as `requireNewest`
 */
export function continuationOf(
  draft: Draft,
  predecessor: Predecessor,
  spec: JobSpec,
  earlier: JobId | null = null,
): InheritedCheckpoints {
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
  const inherited = inheritedCheckpointsOf(draft, active ?? predecessor, successor, { kind: 'newest' });
  if (inherited.resumedFrom != null) return inherited;
  const remedy =
    earlier === null
      ? `\`muster checkpoints ${id}\` lists what it has saved`
      : `${earlier}, an earlier job of that name, has one: give its id`;
  throw new MusterError(
    'failed_precondition',
    `${id} has no verified checkpoint to continue from; ${remedy}`,
  );
}

/** The checkpoint at a path that the user names. @param path absolute, as the job sees it */
export function continuationAt(path: string): InheritedCheckpoints {
  const { base: name } = posix.parse(nameBeforeSetAside(path));
  const step = /(\d+)(?:\.[a-z0-9_]+)*$/i.exec(name)?.[1];
  const checkpoint: Checkpoint = {
    name: path,
    version: '',
    step: step === undefined ? null : Number(step),
    format: 'unknown',
    bytes: 0,
    files: 0,
    savedAtMs: 0,
    saveDurationMs: null,
    metrics: {},
    digest: null,
    // The user vouches for it, and the agent checks it before the task runs.
    verdict: 'verified',
    depth: null,
    problem: null,
    reread: false,
    attempt: 0,
    node: '',
    shared: true,
    suspect: false,
  };
  return {
    checkpoints: [checkpoint],
    resumedFrom: { jobId: null, name: path, step: checkpoint.step },
  };
}

/** A key that is equal for jobs that save in one directory. It is null for a job that saves no checkpoints. */
function placeOf(job: Successor): string | null {
  const { checkpoint, image } = job.spec;
  return checkpoint.dir === null && image === null ? 'kept by the node' : directoryOf(job);
}

/** The good checkpoints, with names that lead to where they are. */
function readFromOutside(predecessor: Predecessor, to: Successor): readonly Checkpoint[] {
  const { id, spec, checkpoints } = predecessor;
  const isReadable = (spec.image === null) === (to.spec.image === null);
  if (!isReadable) {
    throw new MusterError(
      'failed_precondition',
      `${id} and this job do not see the same files, for only one of them runs in a container: continue from the path that ` +
        'this job sees, --resume-from /path/to/checkpoint',
    );
  }
  return checkpoints.filter(isGood).map((each) => seenFromOutside(predecessor, each));
}

/** A checkpoint under a name that leads other jobs to it. */
export function seenFromOutside(
  owner: Pick<Predecessor, 'spec' | 'array' | 'checkpointJobId'>,
  checkpoint: Checkpoint,
): Checkpoint {
  const { name } = checkpoint;
  if (externalCheckpoint(name) !== null) return { ...checkpoint, attempt: 0 };
  const { dir } = ownSpec(owner).checkpoint;
  const path = dir === null ? `${owner.checkpointJobId}/${name}` : posix.join(dir, name);
  return { ...checkpoint, attempt: 0, name: path };
}

/** Refuses a second successor: two jobs in one directory would resume from, and delete, each other's checkpoints. */
function requireSoleSuccessor(draft: Draft, { id, checkpointJobId }: Predecessor): void {
  for (const other of draft.activeJobs()) {
    if (other.checkpointJobId !== checkpointJobId) continue;
    throw new MusterError(
      'failed_precondition',
      `${other.id} continues from the checkpoints of ${id} already; stop it first, or start from scratch: ` +
        `muster requeue ${id} --from start`,
    );
  }
}
