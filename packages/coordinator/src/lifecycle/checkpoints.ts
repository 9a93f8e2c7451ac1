/**
 * The list of checkpoints of a job. A name and a version identify one checkpoint, and knowledge about it only grows. One that
 * was found corrupt stays corrupt when an agent looks at it less closely later; only a second full reading can clear it.
 */

import {
  type Checkpoint,
  type CheckpointFacts,
  externalCheckpoint,
  isSetAside,
  nameBeforeSetAside,
  type ResumeChoice,
  verificationDepths,
} from '@muster/common/checkpoints';
import type { NewEvent } from '@muster/common/eventKinds';
import type { NodeName } from '@muster/common/ids';
import { isDivergence } from '@muster/common/training';
import type { AttemptSign } from '@muster/common/views';
import { type Attempt, checkpointsMax, isReleased, type Job } from '../model.ts';
import {
  fencedAttempt,
  type Handler,
  type JobEvent,
  jobEvent,
  type Saver,
  type Transition,
  unchanged,
  withAttempt,
} from './event.ts';
import { isGood, resumeCandidates } from './resume.ts';

type Seen = Extract<JobEvent, { kind: 'checkpoint' }>;

/**
 * The node whose report counts. For the current attempt, it is the node of that rank. While the job waits, it is the node
 * that has reported the checkpoint before, and may report more about it. An attempt that has ended reports no new
 * checkpoint (guarantee G6).
 * @returns null when nobody may
 */
export function checkpointReporter(
  job: Job,
  { attempt: number, nodeRank, checkpoint }: Pick<Seen, 'attempt' | 'nodeRank' | 'checkpoint'>,
): NodeName | null {
  const attempt = fencedAttempt(job, number);
  if (attempt !== null) return attempt.tasks[nodeRank]?.node ?? null;
  if (job.state.kind !== 'queued' || number !== job.lastAttempt) return null;
  const known = knownAs(job, checkpoint.name);
  return known?.version === checkpoint.version ? (known.node as NodeName) : null;
}

export const checkpoint: Handler<'checkpoint'> = (job, event, nowMs) => {
  const node = checkpointReporter(job, event);
  // What a job saves lies in its directory, and nowhere else.
  if (node === null || externalCheckpoint(event.checkpoint.name) !== null) return unchanged(job);
  const attempt = fencedAttempt(job, event.attempt);
  const moved = movedAside(job, event.checkpoint);
  if (moved !== null && attempt !== null) return { ...moved, ended: null };
  const before = knownAs(job, event.checkpoint.name);
  const known = before?.version === event.checkpoint.version ? before : undefined;
  const after =
    known === undefined
      ? firstSeen(job, attempt, event, node)
      : withFacts(known, event.checkpoint, { node, shared: event.shared });
  const checkpoints =
    known === undefined
      ? bounded(placed(job.checkpoints, after), job.resumeChoice)
      : job.checkpoints.map((each) => (each === known ? after : each));
  // Older than everything that is kept.
  if (!checkpoints.includes(after)) return unchanged(job);

  const isVerifiedNow = isGood(after) && known?.verdict !== 'verified';
  const next = { ...job, checkpoints };
  if (attempt === null) {
    if (after === known) return unchanged(job);
    const rewarded = isVerifiedNow && after.attempt === event.attempt ? afterLateProgress(next) : next;
    return { job: rewarded, ended: null, events: changesOf(job, known, after) };
  }

  const isOwn = after.attempt === attempt.number && isNewer(job, attempt, event);
  const isProgress = isVerifiedNow && isOwn && isReleased(attempt);
  const savedAtMs = isProgress ? momentOf(attempt, after.savedAtMs, nowMs) : attempt.savedAtMs;
  const savedAfterStop = attempt.savedAfterStop || endsGrace(job, event.afterStop, after);
  if (after === known && savedAfterStop === attempt.savedAfterStop) return unchanged(job);
  const saved: Attempt = { ...attempt, savedAtMs, savedAfterStop };
  return {
    job: withAttempt(isProgress ? afterProgress(next) : next, saved),
    ended: null,
    events: changesOf(job, known, after),
  };
};

/** One that was set aside keeps all that is known of it. @returns null: it is no such one, or was not known under its other name */
function movedAside(job: Job, { name, version }: CheckpointFacts): Pick<Transition, 'job' | 'events'> | null {
  const before = isSetAside(name) ? knownAs(job, nameBeforeSetAside(name)) : undefined;
  if (before?.version !== version || before.verdict === 'gone') return null;
  const checkpoints = job.checkpoints
    .filter((each) => each.name !== name)
    .map((each) => (each === before ? { ...each, name } : each));
  const problem = `set aside as ${name}: a later attempt resumes from an earlier step`;
  const { step, node, attempt } = before;
  const data = { attempt, checkpoint: before.name, step, node, problem, verdict: 'gone' };
  return { job: { ...job, checkpoints }, events: [jobEvent(job, 'checkpoint.gone', data)] };
}

export function knownAs({ checkpoints }: Job, name: string): Checkpoint | undefined {
  return checkpoints.find((each) => each.name === name);
}

/**
 * Newer than what its attempt resumed from. Steps are compared where both are known. Where one is missing, the index of the
 * directory tells; the clock of a node decides only for an agent that does not say what the index does.
 */
function isNewer(job: Job, { resume, number }: Attempt, { checkpoint: facts, saver }: Seen): boolean {
  if (resume === null) return true;
  if (resume.step !== null && facts.step !== null) return facts.step > resume.step;
  if (saver !== undefined) return saver?.job === job.id && saver.attempt === number;
  const begunFrom = job.checkpoints.find((each) => each.name === resume.name && each.attempt !== number);
  return begunFrom === undefined || facts.savedAtMs > begunFrom.savedAtMs;
}

/**
 * A directory may hold what was saved before, and was never reported here or is forgotten: that is not the doing of this attempt.
 * It counts for the attempt that the index of the directory names, or else for the last one that can have saved it.
 */
function firstSeen(job: Job, attempt: Attempt | null, event: Seen, node: NodeName): Checkpoint {
  const { checkpoint: facts, shared, saver } = event;
  const added = { ...facts, node, shared, suspect: false };
  const earlier = saver === undefined ? null : earlierSaver(job, event.attempt, saver);
  if (earlier !== null) return { ...added, ...foundBy(job, facts, earlier, saver === null) };
  const isOwn = attempt === null || isNewer(job, attempt, event) || isSavedAgain(job, attempt, event);
  const begunFrom = isOwn ? undefined : knownAs(job, attempt.resume?.name ?? '');
  const number = begunFrom?.attempt ?? event.attempt;
  const isDiverged = attempt?.number === number && attempt.signs.some((sign) => isAfter(sign, facts));
  return { ...added, attempt: number, ...(isDiverged && { diverged: true }) };
}

/** What is known of a checkpoint of an earlier attempt that was found only now. @param earlier as `earlierSaver` returns it */
export function foundBy(
  job: Job,
  facts: CheckpointFacts,
  earlier: number,
  isSaverUnknown: boolean,
): Pick<Checkpoint, 'attempt' | 'diverged' | 'found' | 'saverUnknown'> {
  const isDiverged = job.checkpoints.some(
    (each) => each.attempt === earlier && isDivergedBefore(each, facts),
  );
  return {
    attempt: earlier,
    ...(isDiverged && { diverged: true }),
    found: true,
    ...(isSaverUnknown && { saverUnknown: true }),
  };
}

/** @returns the number of an attempt before `current`, 0 for one of an earlier job. null: the current attempt has saved it */
export function earlierSaver(job: Job, current: number, saver: Saver): number | null {
  if (saver === null) return current - 1;
  if (saver.job !== job.id) return 0;
  return saver.attempt < current ? saver.attempt : null;
}

/** The loss had diverged before a checkpoint of the same attempt was saved. */
function isDivergedBefore({ diverged, step }: Checkpoint, facts: CheckpointFacts): boolean {
  return diverged === true && (step === null || facts.step === null || step <= facts.step);
}

/**
 * A known name has other contents now. A step below that of the offered checkpoint does not count: a program that has not loaded
 * that checkpoint starts from scratch, and what it saves must not be preferred to the checkpoint that got further.
 */
function isSavedAgain(job: Job, { resume }: Attempt, { checkpoint: { name, step }, saver }: Seen): boolean {
  const isBehind = resume !== null && resume.step !== null && step !== null && step < resume.step;
  return !isBehind && (saver !== undefined || knownAs(job, name) !== undefined);
}

/** A checkpoint without a step counts as saved after the sign, because it was seen after it. */
function isAfter({ kind, step, lastGoodStep }: AttemptSign, saved: Pick<CheckpointFacts, 'step'>): boolean {
  if (!isDivergence(kind)) return false;
  const goodUntil = lastGoodStep ?? (step === null ? null : step - 1);
  return saved.step === null || goodUntil === null || saved.step > goodUntil;
}

/**
 * The loss has become NaN or diverged in this attempt: what it has saved since then has that in it. Without one good step since
 * the start, it was in the checkpoint that the attempt resumed from. Where that was only found on disk, so were those around it,
 * and all of them count as saved after a divergence that nobody was told of.
 */
export function withDiverged(job: Job, { number, resume }: Attempt, sign: AttemptSign): Job {
  const begunFrom = job.checkpoints.find((each) => each.name === resume?.name && each.attempt < number);
  const isFromUnknown =
    begunFrom?.found === true && isDivergence(sign.kind) && hasNoGoodStep(sign, begunFrom);
  const isMeant = (each: Checkpoint) =>
    each.diverged !== true &&
    ((each.attempt === number && each.step !== null && isAfter(sign, each)) ||
      (isFromUnknown && each.found === true && each.attempt === begunFrom.attempt));
  return withCheckpoints(job, isMeant, { diverged: true });
}

function hasNoGoodStep({ lastGoodStep }: AttemptSign, { step }: Checkpoint): boolean {
  return lastGoodStep === null || (step !== null && lastGoodStep <= step);
}

/** @returns the same object if the report changes nothing */
export function withFacts(
  known: Checkpoint,
  facts: CheckpointFacts,
  place: Pick<Checkpoint, 'node' | 'shared'>,
): Checkpoint {
  const isSurer =
    isContradicted(known, facts) || (sureness(facts) > sureness(known) && !isContradicted(facts, known));
  const { verdict, depth, problem } = isSurer ? facts : known;
  const reread = isSurer ? facts.reread : known.reread || (facts.reread && facts.verdict === known.verdict);
  const digest = facts.digest ?? known.digest;
  const added = Object.entries(facts.metrics).filter(([name, value]) => known.metrics[name] !== value);
  const isChange =
    isSurer ||
    reread !== known.reread ||
    digest !== known.digest ||
    added.length > 0 ||
    place.node !== known.node ||
    place.shared !== known.shared;
  if (!isChange) return known;
  const metrics = { ...known.metrics, ...Object.fromEntries(added) };
  return { ...known, ...place, verdict, depth, problem, reread, digest, metrics };
}

/** A second reading, as close as the one that found it corrupt, has found it whole. */
function isContradicted(first: CheckpointFacts, second: CheckpointFacts): boolean {
  const isCorrected = first.verdict === 'corrupt' && second.verdict === 'verified';
  return isCorrected && second.reread && !first.reread && closeness(second) >= closeness(first);
}

function closeness({ depth }: Pick<CheckpointFacts, 'depth'>): number {
  return depth === null ? 0 : verificationDepths.indexOf(depth) + 1;
}

/** What is gone is gone; corrupt outranks verified, which outranks not knowing; then the depth of the look counts. */
function sureness(facts: Pick<CheckpointFacts, 'verdict' | 'depth'>): number {
  const ranked: readonly CheckpointFacts['verdict'][] = ['unverified', 'verified', 'corrupt', 'gone'];
  return ranked.indexOf(facts.verdict) * (verificationDepths.length + 1) + closeness(facts);
}

/**
 * Into the order in which they were saved. That of a later attempt comes after all of an earlier one's, which may have got
 * further before it was taken back. Within an attempt, steps decide, because no clock can reverse them: the node's clock
 * counts only where one of the two has no step. What is found of an earlier attempt only now, with an unknown step, was saved
 * before all that is known of it.
 */
export function placed(known: readonly Checkpoint[], added: Checkpoint): readonly Checkpoint[] {
  const others = known.filter(({ name }) => name !== added.name);
  const earlier = others.filter(({ attempt }) => attempt < added.attempt);
  const later = others.filter(({ attempt }) => attempt > added.attempt);
  const same = others.filter(({ attempt }) => attempt === added.attempt);
  const group = [...same, added];
  const everyStepIsKnown = group.every(({ step }) => step !== null);
  if (later.length > 0 && !everyStepIsKnown) return [...earlier, added, ...same, ...later];
  group.sort(
    (a, b) =>
      (everyStepIsKnown ? (a.step ?? 0) - (b.step ?? 0) : 0) ||
      a.savedAtMs - b.savedAtMs ||
      (a.name < b.name ? -1 : 1),
  );
  return [...earlier, ...group, ...later];
}

/**
 * The newest ones that are there, and among them always the newest good one, on which all depends, and the one that the next attempt
 * resumes from by the choice of a user.
 */
export function bounded(checkpoints: readonly Checkpoint[], chosen: ResumeChoice): readonly Checkpoint[] {
  if (checkpoints.length <= checkpointsMax) return checkpoints;
  const choices: readonly ResumeChoice[] = [{ kind: 'newest' }, chosen];
  const needed = choices.map((resumeChoice) => resumeCandidates({ checkpoints, resumeChoice })[0]);
  const oldest =
    checkpoints.find(({ verdict }) => verdict === 'gone') ??
    checkpoints.find((each) => !needed.includes(each));
  return checkpoints.filter((each) => each !== oldest);
}

/** Clocks differ between machines: nothing was saved before its attempt ran, nor in the future. */
function momentOf({ runningAtMs, allocatedAtMs, savedAtMs }: Attempt, atMs: number, nowMs: number): number {
  return Math.max(savedAtMs ?? runningAtMs ?? allocatedAtMs, Math.min(atMs, nowMs));
}

/** Whether a stopping job has saved what its grace is for. @param afterStop the checkpoint was begun after the signal to stop */
export function endsGrace({ state }: Job, afterStop: boolean, { verdict }: Checkpoint): boolean {
  return afterStop && state.kind === 'stopping' && verdict === 'verified';
}

/** What has been done is kept, so whatever went wrong before it is over. */
export function afterProgress(job: Job): Job {
  const rewarded: Job = { ...job, failures: 0, failuresInRow: 0, recentFailures: [], excludedNodes: [] };
  // Its user has just chosen where to go back to: what was saved before that may become known only now, and changes nothing.
  const { state } = job;
  const isRequeued = state.kind === 'stopping' && state.isRequeued === true;
  return isRequeued ? rewarded : { ...rewarded, resumeChoice: { kind: 'newest' } };
}

/** It was saved before the attempt ended, so that end is the one that counts since. */
function afterLateProgress(job: Job): Job {
  const { failures, failuresInRow } = job;
  return {
    ...job,
    failures: Math.min(failures, 1),
    failuresInRow: Math.min(failuresInRow, 1),
    recentFailures: [],
    excludedNodes: [],
  };
}

/** One event for each verdict of a checkpoint, and none for one that nobody has looked at yet. */
export function changesOf(job: Job, known: Checkpoint | undefined, after: Checkpoint): readonly NewEvent[] {
  const kind = changeKind(after);
  if (kind === null || (known !== undefined && changeKind(known) === kind)) return [];
  const { name, step, bytes, saveDurationMs, verdict, problem, metrics, node, attempt, diverged } = after;
  // The name of a job event's data is the job's.
  const data = { attempt, checkpoint: name, step, bytes, saveDurationMs, verdict, problem, metrics, node };
  const marked = diverged === true ? { ...data, diverged } : data;
  return [jobEvent(job, kind, marked)];
}

function changeKind({ verdict, problem }: Checkpoint) {
  switch (verdict) {
    case 'verified':
      return 'checkpoint.saved';
    case 'corrupt':
      return 'checkpoint.corrupt';
    case 'gone':
      return 'checkpoint.gone';
    case 'unverified':
      return problem === null ? null : 'checkpoint.seen';
    default: {
      const never: never = verdict;
      return never;
    }
  }
}

/** What became of checkpoints that speak for themselves no longer: an attempt has died of them. */
export function verdictEvents(before: Job, after: Job): readonly NewEvent[] {
  return after.checkpoints.flatMap((now) => {
    const was = knownAs(before, now.name);
    if (was === undefined || was === now) return [];
    const { name, step, node, attempt, problem } = now;
    const data = { attempt, checkpoint: name, step, node, problem };
    const isWorse = now.verdict === 'corrupt' || now.verdict === 'gone';
    if (isWorse && was.verdict !== now.verdict)
      return [jobEvent(after, `checkpoint.${now.verdict}`, { ...data, verdict: now.verdict })];
    return now.suspect && !was.suspect ? [jobEvent(after, 'checkpoint.suspect', data)] : [];
  });
}

/** Those that are meant, so changed. */
export function withCheckpoints(
  job: Job,
  isMeant: (checkpoint: Checkpoint) => boolean,
  change: Partial<Checkpoint>,
): Job {
  if (!job.checkpoints.some(isMeant)) return job;
  return {
    ...job,
    checkpoints: job.checkpoints.map((each) => (isMeant(each) ? { ...each, ...change } : each)),
  };
}
