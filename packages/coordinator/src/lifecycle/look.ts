/**
 * What an attempt resumes from: the choice of the planner was made of what agents had reported, and the agent of rank 0 has looked at
 * what is there. What it has found becomes part of the list of checkpoints, and the rules that order them (`resume.ts`) choose among
 * those that are intact on its node. Pure; the choice is stored with the attempt before its release.
 */
import { causeOf } from '@muster/common/cause';
import {
  type Checkpoint,
  type CheckpointFacts,
  type CheckpointLook,
  externalCheckpoint,
  type FoundCheckpoint,
  type LookOrder,
  lookCandidatesMax,
} from '@muster/common/checkpoints';
import type { NewEvent } from '@muster/common/eventKinds';
import type { NodeName } from '@muster/common/ids';
import type { Cause, Resume } from '@muster/common/views';
import type { Attempt, Job } from '../model.ts';
import { bounded, changesOf, earlierSaver, foundBy, knownAs, placed, withFacts } from './checkpoints.ts';
import { attemptEvent, type Saver } from './event.ts';
import { isKeptByNode, resumeCandidates } from './resume.ts';

/** A node that sees nothing of what others have saved is believed after this many starts that failed. */
const emptyLooksMax = 2;

/**
 * What the node of rank 0 looks at before the attempt starts.
 * @returns null: nothing, for the attempt is the first of its chain, or its user wants it to start from scratch
 */
export function lookOrderOf(job: Job, attempt: Attempt): LookOrder | null {
  const { resumeChoice, checkpoints } = job;
  const isFirst = attempt.number === 1 && job.checkpointJobId === job.id && checkpoints.length === 0;
  if (resumeChoice.kind === 'start' || isFirst) return null;
  const home = attempt.tasks[0]?.node;
  const best = resumeCandidates(job);
  const planned = best.findIndex(({ name }) => name === attempt.resume?.name);
  const chosen = planned < 0 ? undefined : best[planned];
  // What lies on another machine's own disk is not the file of that name there.
  const isReadable = ({ shared, node }: Checkpoint) => shared || node === home || node === chosen?.node;
  const candidates = chosen === undefined ? [] : best.slice(planned).filter(isReadable);
  return {
    candidates: candidates
      .slice(0, lookCandidatesMax)
      .map(({ name, version, fingerprint = null, bytes, files }) => ({
        name,
        version,
        fingerprint,
        bytes,
        files,
      })),
    stepMax: resumeChoice.kind === 'step' ? resumeChoice.step : null,
  };
}

/** What comes of a look. */
export interface AfterLook {
  readonly job: Job;
  readonly resume: Resume | null;
  /** Why the attempt cannot start on this node. null: it can. */
  readonly cause: Cause | null;
  readonly events: readonly NewEvent[];
}

/** @param attempt the current one, before its release */
export function afterLook(job: Job, attempt: Attempt, look: CheckpointLook): AfterLook {
  const node = attempt.tasks[0]?.node as NodeName;
  const refusal = isBlind(job, attempt, look, node)
    ? `${node} sees no checkpoint in the directory of the job, which ${look.problem}`
    : null;
  if (refusal !== null) return refused(job, attempt, refusal, []);
  const taken = look.found.reduce<Taken>((before, found) => withFound(before, found, attempt, look, node), {
    job,
    events: [],
  });
  const intact = new Map(
    look.found
      .filter(({ checkpoint: { verdict } }) => verdict === 'verified')
      .map(({ checkpoint: { name, version } }) => [name, version]),
  );
  const candidates = resumeCandidates(taken.job);
  const best = candidates.find(({ name, version }) => {
    const there = intact.get(name);
    return there !== undefined && (version === '' || there === version);
  });
  // What is left lies where this node does not read it, or was not looked at: the planner decides again.
  if (best === undefined && attempt.resume !== null && candidates.length > 0) {
    const message = `${attempt.resume.name} cannot be resumed from on ${node}: ${problemOf(look, attempt.resume.name)}`;
    return refused(taken.job, attempt, message, taken.events);
  }
  const why = whyChosen(job, attempt, look, best);
  const resume: Resume | null = best === undefined ? null : { name: best.name, step: best.step };
  if (why === null) return { ...taken, resume: attempt.resume, cause: null };
  const chosen = resume === null ? null : { ...resume, why };
  const planned = attempt.resume === null ? null : { name: attempt.resume.name, step: attempt.resume.step };
  const event = attemptEvent(taken.job, attempt, 'attempt.resume_chosen', { node, resume, planned, why });
  return { job: taken.job, resume: chosen, cause: null, events: [...taken.events, event] };
}

/** Nothing is there although others have saved something: its storage may not be mounted. */
function isBlind(job: Job, { resume }: Attempt, look: CheckpointLook, node: NodeName): boolean {
  const planned = resume === null ? undefined : knownAs(job, resume.name);
  if (look.problem === null || planned === undefined || externalCheckpoint(planned.name) !== null)
    return false;
  const isElsewhere = planned.node !== node && !isKeptByNode(job.spec, planned);
  return (isElsewhere || planned.shared) && job.failedStarts < emptyLooksMax;
}

function refused(job: Job, attempt: Attempt, message: string, events: readonly NewEvent[]): AfterLook {
  const node = attempt.tasks[0]?.node ?? null;
  const cause = causeOf('corrupt_checkpoint', message, { nodeRank: 0, node });
  return { job, resume: attempt.resume, cause, events };
}

interface Taken {
  readonly job: Job;
  readonly events: readonly NewEvent[];
}

/** One more of the list, or what is known of it now. */
function withFound(
  { job, events }: Taken,
  found: FoundCheckpoint,
  attempt: Attempt,
  { shared }: CheckpointLook,
  node: NodeName,
): Taken {
  const { checkpoint: facts } = found;
  const known = knownAs(job, facts.name);
  const after =
    known === undefined ? added(job, found, attempt, node, shared) : changed(known, facts, node, shared);
  if (after === null || after === known) return { job, events };
  const isReplaced = known?.version === after.version;
  const checkpoints = isReplaced
    ? job.checkpoints.map((each) => (each === known ? after : each))
    : bounded(placed(job.checkpoints, after), job.resumeChoice);
  if (!checkpoints.includes(after)) return { job, events };
  return { job: { ...job, checkpoints }, events: [...events, ...changesOf(job, known, after)] };
}

/** @returns null: it is of no use, or lies outside of the directory of the job */
function added(
  job: Job,
  { checkpoint: facts, by, attempt: savedIn }: FoundCheckpoint,
  { number }: Attempt,
  node: NodeName,
  shared: boolean,
): Checkpoint | null {
  if (facts.verdict !== 'verified' || externalCheckpoint(facts.name) !== null) return null;
  const saver = saverOf(job, by, savedIn);
  const earlier = Math.min(earlierSaver(job, number, saver) ?? number - 1, number - 1);
  return { ...facts, node, shared, suspect: false, ...foundBy(job, facts, earlier, saver === null) };
}

/** An agent of an earlier release has noted the attempt without its job. @returns null: nobody has noted who saved it */
function saverOf({ id }: Job, by: string | null, attempt: number | null): Saver {
  return attempt === null || (by === null && attempt === 0) ? null : { job: by ?? id, attempt };
}

/** @returns the same object if nothing new is known of it */
function changed(known: Checkpoint, facts: CheckpointFacts, node: NodeName, shared: boolean): Checkpoint {
  const place = externalCheckpoint(known.name) === null ? { node, shared: shared || known.shared } : known;
  if (known.version === facts.version || known.version === '') {
    if (facts.verdict === 'verified') return withFacts(known, { ...facts, version: known.version }, place);
    // That it could not be read this time says nothing about it.
    if (facts.verdict === 'unverified') return known;
    const { verdict, problem, depth } = facts;
    return { ...known, verdict, problem, depth };
  }
  const { attempt, found } = known;
  // Another content under its name. The metrics are of the one before.
  return {
    ...facts,
    attempt,
    node: place.node,
    shared: place.shared,
    suspect: false,
    ...(found && { found }),
  };
}

/** @returns null: it is what was planned, as it was known */
function whyChosen(
  job: Job,
  { resume: planned }: Attempt,
  look: CheckpointLook,
  best: Checkpoint | undefined,
): string | null {
  const isPlanned = best?.name === planned?.name;
  if (isPlanned) {
    const before = best === undefined ? undefined : knownAs(job, best.name);
    const isSame = before === undefined || before.version === '' || before.version === best?.version;
    return isSame ? null : 'read again, for it has changed since it was verified';
  }
  const wanted =
    planned === null ? undefined : look.found.find(({ checkpoint }) => checkpoint.name === planned.name);
  const isUnusable = wanted !== undefined && wanted.checkpoint.verdict !== 'verified';
  if (planned !== null && isUnusable)
    return `${planned.name} cannot be used: ${problemOf(look, planned.name)}`;
  if (planned === null) return 'found on disk; no node had reported any';
  const reporter = knownAs(job, planned.name)?.node ?? '';
  const reported = planned.step === null ? planned.name : `step ${planned.step}`;
  return `found on disk; ${reporter === '' ? 'known was' : `${reporter} had reported`} ${reported}`;
}

function problemOf({ found }: CheckpointLook, name: string): string {
  const checkpoint = found.find((each) => each.checkpoint.name === name)?.checkpoint;
  if (checkpoint === undefined) return 'it was not looked at';
  return checkpoint.problem ?? `it is ${checkpoint.verdict}`;
}
