/** From what was noticed to the one thing that went wrong first. Pure. */
import { causeFacts } from '@muster/common/causeFacts';
import type { Diagnosis } from '../model.ts';
import { type FailureFinding, type FailureVerdict, finding, strengths, withVerdict } from './finding.ts';
import { type FailureObservation, linesBetween } from './observations.ts';

/** How a process ended, as its node saw it. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  /** `SIGKILL`, … */
  readonly signal: string | null;
  /** The kernel's out-of-memory killer took a process of it. false: it is known that it did not. */
  readonly oomKilled: boolean;
}

export interface FailureResult {
  readonly state: Diagnosis['state'];
  /** null: nothing went wrong. */
  readonly found: FailureFinding | null;
}

export interface Evidences {
  readonly observations: readonly FailureObservation[];
  /** Of the launcher's summary or notice; null: no end of a process was reported. */
  readonly reportedExit: FailureObservation | null;
  /** It died of something that a process does not do to itself while it exits. */
  readonly exitIsBeginning: boolean;
  /** `sequence` of the notice that the whole run will be stopped. null: there was none. */
  readonly stoppedAt: number | null;
  /** `sequence` of the line that all is done. null: there is none, or the program continued after it. */
  readonly completedAt: number | null;
  readonly steps: number;
  readonly ordinaryLines: number;
  /** The verdict of all watchdogs together. */
  readonly timeoutVerdict: FailureVerdict;
}

/** After this number of lines about other things it has continued, where nothing shows an end. */
const linesUntilSurvived = 50;
/** After this number of steps a program has dealt with trouble that can be dealt with, however it ends. */
const stepsUntilDealtWith = 2;
/** The same where it is known to have ended: by that much later that this cannot be why. */
const linesUntilUnrelated = 2_000;

export function judgeFailure(evidences: Evidences, end: ProcessEnd | null): FailureResult {
  if (end?.exitCode === 0) return { state: 'completed', found: null };
  const endedBadly = end !== null;
  const live = liveObservations(evidences, endedBadly);
  const picked = pick(evidences, live, endedBadly);
  if (!endedBadly && isOverBefore(evidences, live)) return { state: 'completed', found: null };
  const found = picked === null ? null : refined(picked, evidences, end);
  const final = end === null ? found : withEnd(found, end);
  if (final === null) return { state: 'running', found: null };
  return { state: final.kind === 'stopped_by_signal' ? 'stopped' : 'failed', found: final };
}

function liveObservations(evidences: Evidences, endedBadly: boolean): readonly FailureObservation[] {
  const { observations, steps, ordinaryLines } = evidences;
  const lastFinal = Math.max(-1, ...observations.map((each) => (each.final ? each.sequence : -1)));
  return observations.filter((each) => {
    const linesAfter = ordinaryLines - each.ordinaryLines;
    const isOver = endedBadly || lastFinal >= each.sequence;
    if (isOver && linesAfter >= linesUntilUnrelated) return false;
    if (each.weak && steps - each.steps >= stepsUntilDealtWith) return false;
    if (!isOver && (steps > each.steps || linesAfter >= linesUntilSurvived)) return false;
    return !isOutlived(each, observations);
  });
}

/** The program continued after this exception, until another one occurred: it has dealt with this one. */
function isOutlived(
  { found, final, ordinaryLines }: FailureObservation,
  observations: readonly FailureObservation[],
): boolean {
  if (final || !isAnyException(found)) return false;
  return observations.some(
    (later) =>
      !later.weak &&
      isAnyException(later.found) &&
      later.found.consequence === found.consequence &&
      later.ordinaryLines - ordinaryLines >= linesBetween,
  );
}

function isAnyException({ kind, strength }: FailureFinding): boolean {
  return strength === 'program' && (kind === 'python_exception' || kind === 'import_error');
}

function isOverBefore({ completedAt }: Evidences, live: readonly FailureObservation[]): boolean {
  return completedAt !== null && live.every(({ weak, sequence }) => weak || sequence < completedAt);
}

/** The first of those that count most: see each step. */
function pick(
  evidences: Evidences,
  live: readonly FailureObservation[],
  endedBadly: boolean,
): FailureObservation | null {
  const { reportedExit, exitIsBeginning, stoppedAt } = evidences;
  const knownBad = endedBadly || live.some(({ final }) => final);
  const usable = live.filter(({ weak }) => knownBad || !weak);
  const isAfterStop = ({ found, sequence }: FailureObservation) =>
    stoppedAt !== null && sequence > stoppedAt && !['hardware', 'storage'].includes(found.strength);
  const begins = (each: FailureObservation) =>
    !each.found.consequence && !isAfterStop(each) && (each !== reportedExit || exitIsBeginning);
  const follows = (each: FailureObservation) =>
    each.found.consequence && each.found.strength !== 'stop' && !isAfterStop(each);
  const isSure = ({ weak }: FailureObservation) => !weak;
  return (
    foremost(usable.filter((each) => begins(each) && isSure(each))) ??
    foremost(usable.filter(begins)) ??
    foremost(usable.filter((each) => follows(each) && isSure(each))) ??
    foremost(usable.filter(follows)) ??
    // An exit code shows only that it ended.
    foremost(
      usable.filter((each) => each === reportedExit && !each.found.consequence && !isAfterStop(each)),
    ) ??
    foremost(usable.filter(({ found }) => found.strength === 'stop'))
  );
}

function foremost(observations: readonly FailureObservation[]): FailureObservation | null {
  const [first] = [...observations].sort(
    (a, b) =>
      strengths.indexOf(a.found.strength) - strengths.indexOf(b.found.strength) || a.sequence - b.sequence,
  );
  return first ?? null;
}

function refined(
  { found, needsProof }: FailureObservation,
  { reportedExit, timeoutVerdict }: Evidences,
  end: ProcessEnd | null,
): FailureFinding {
  const rank = found.evidence.rank ?? reportedExit?.found.evidence.rank ?? null;
  const placed = { ...found, evidence: { ...found.evidence, rank } };
  if (placed.kind === 'nccl_timeout') return withVerdict(placed, timeoutVerdict);
  if (!needsProof || end === null) return placed;
  return end.oomKilled
    ? { ...placed, advice: causeFacts.host_oom.advice }
    : withVerdict(placed, { kind: 'unknown' });
}

const oomText = 'the kernel killed one of its processes because memory ran out';

/** Adds what the node observed of the end to what the output shows. */
function withEnd(found: FailureFinding | null, end: ProcessEnd): FailureFinding {
  const isVague =
    found === null ||
    found.consequence ||
    ['collective', 'exit', 'stop'].includes(found.strength) ||
    found.kind === 'python_exception';
  if (end.oomKilled && isVague && found?.kind !== 'host_oom') {
    const rank = found?.evidence.rank ?? null;
    return finding({ kind: 'host_oom', strength: 'program', evidence: { line: null, text: oomText, rank } });
  }
  return found ?? endFinding(end);
}

function endFinding({ exitCode, signal }: ProcessEnd): FailureFinding {
  const text =
    signal !== null
      ? `ended by ${signal}`
      : exitCode === null
        ? 'its exit status is unknown'
        : `exit code ${exitCode}`;
  const about = { strength: 'exit', evidence: { line: null, text, rank: null } } as const;
  if (signal === 'SIGTERM' || signal === 'SIGINT' || exitCode === 143 || exitCode === 130)
    return finding({ ...about, kind: 'stopped_by_signal', strength: 'stop', consequence: true });
  if (signal === null && exitCode !== null) return finding({ ...about, kind: 'exit_code' });
  return finding({ ...about, kind: 'unknown' });
}
