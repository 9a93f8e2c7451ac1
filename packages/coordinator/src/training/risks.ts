/** What threatens the work of a job: pure. */
import type { Checkpoint } from '@muster/common/checkpoints';
import { signLines } from '@muster/common/signText';
import type { HangSign, TrainingSign } from '@muster/common/training';
import type { Drain, JobView } from '@muster/common/views';
import { codeSpan, markdownText, roughDuration } from './markdown.ts';

/** Facts that the view of a job does not have: signs while it runs, and drains of its nodes. */
export interface TrainingSurroundings {
  readonly hangs: readonly { readonly nodeRank: number; readonly sign: HangSign }[];
  readonly signs: readonly { readonly nodeRank: number; readonly sign: TrainingSign }[];
  readonly drains: readonly { readonly node: string; readonly drain: Drain }[];
}

const unsavedMsMax = 3_600_000;
/** A job that saves every few seconds is not at risk because one save takes a little longer. */
const unsavedMsMin = 600_000;
/** How many times the usual time between two saves. */
const unsavedTimes = 3;
const badCheckpointsShownMax = 5;

/** Most urgent first; one sentence each, as Markdown. @param nowMs wall clock */
export function risksOf(job: JobView, around: TrainingSurroundings, nowMs: number): readonly string[] {
  return [
    ...around.hangs.map(hangRisk),
    ...around.signs.filter(({ sign }) => sign.kind !== 'resume_confirmed').map(signRisk),
    ...storedSigns(job, around),
    ...earlierHang(job, around),
    ...around.drains.map(({ node, drain }) => drainRisk(node, drain, nowMs)),
    ...(job.pending?.kind === 'circuit_open'
      ? [`The circuit breaker is open: ${markdownText(job.pending.message)}`]
      : []),
    ...badCheckpoints(job.checkpoints),
    ...unsavedRisk(job, nowMs),
    ...preemptionRisk(job),
  ];
}

function hangRisk({ nodeRank, sign }: TrainingSurroundings['hangs'][number]): string {
  const { quietForMs, usualMs, gpus, rank } = sign;
  const who = rank === null ? `Node rank ${nodeRank}` : `Rank ${rank}`;
  const stillness = gpus === 'idle' ? 'idle' : 'busy without computing';
  return `${who} hangs: no activity for ${roughDuration(quietForMs)} (usually ${roughDuration(usualMs)}), its GPUs ${stillness}`;
}

function signRisk({ nodeRank, sign }: TrainingSurroundings['signs'][number]): string {
  const { kind, step, lastGoodStep, rank, line, text } = sign;
  const where = [
    rank === null ? `node rank ${nodeRank}` : `rank ${rank}`,
    ...(step === null ? [] : [`step ${step}`]),
    ...(lastGoodStep === null ? [] : [`last normal step: ${lastGoodStep}`]),
    `line ${line}`,
  ];
  return `${codeSpan(kind)} (${where.join(', ')}): ${markdownText(text)}`;
}

/** Signs of its newest attempt that agents report no longer: they are stored with it. */
function storedSigns({ attempts }: JobView, { signs }: TrainingSurroundings): readonly string[] {
  const newest = newestOf(attempts);
  if (newest === null) return [];
  const others = newest.signs.filter(({ kind }) => signs.every(({ sign }) => sign.kind !== kind));
  return signLines({ signs: others }).map((line) => markdownText(line));
}

/** A hang that ended the attempt is not repeated here: it is shown as the cause of its end. */
function earlierHang({ attempts }: JobView, { hangs }: TrainingSurroundings): readonly string[] {
  const newest = newestOf(attempts);
  if (newest === null || newest.hungAtMs === null || hangs.length > 0 || newest.cause?.kind === 'hung')
    return [];
  return [`It hung at ${new Date(newest.hungAtMs).toISOString()}`];
}

function newestOf(attempts: JobView['attempts']): JobView['attempts'][number] | null {
  return attempts.toSorted((a, b) => b.number - a.number)[0] ?? null;
}

function drainRisk(node: string, { reason, deadlineMs }: Drain, nowMs: number): string {
  const why = reason === '' ? '' : `: ${markdownText(reason)}`;
  if (deadlineMs === null) return `${markdownText(node)} is being drained${why}`;
  return `${markdownText(node)} is being drained, deadline in ${roughDuration(deadlineMs - nowMs)}${why}`;
}

function badCheckpoints(checkpoints: readonly Checkpoint[]): readonly string[] {
  const bad = checkpoints.filter(({ verdict, suspect }) => verdict === 'corrupt' || suspect).toReversed();
  const shown = bad.slice(0, badCheckpointsShownMax).map(({ name, verdict, problem }) => {
    if (verdict !== 'corrupt')
      return `${codeSpan(name)} is suspect: attempts that were offered it failed in the same way`;
    return `${codeSpan(name)} is corrupt${problem === null ? '' : `: ${markdownText(problem)}`}`;
  });
  const left = bad.length - shown.length;
  return left === 0 ? shown : [...shown, `${left} more checkpoints are corrupt or suspect`];
}

/** Only while it runs: of a job that waits nothing is lost any longer. */
function unsavedRisk({ state, attempts, checkpoints }: JobView, nowMs: number): readonly string[] {
  const runningAtMs = attempts.find(({ endedAtMs }) => endedAtMs === null)?.runningAtMs ?? null;
  if (state !== 'running' || runningAtMs === null) return [];
  const savedAtMs = checkpoints.filter(({ verdict }) => verdict === 'verified').map((each) => each.savedAtMs);
  const unsavedMs = nowMs - Math.max(runningAtMs, ...savedAtMs);
  if (unsavedMs < unsavedLimitMs(savedAtMs)) return [];
  const lost = 'work since then is lost if it fails now';
  return [`No verified checkpoint for ${roughDuration(unsavedMs)}: ${lost}`];
}

function unsavedLimitMs(savedAtMs: readonly number[]): number {
  const distances = savedAtMs.slice(1).map((atMs, index) => atMs - (savedAtMs[index] ?? atMs));
  const usualMs = distances.toSorted((a, b) => a - b)[Math.floor(distances.length / 2)];
  if (usualMs === undefined) return unsavedMsMax;
  return Math.max(unsavedMsMin, unsavedTimes * usualMs);
}

function preemptionRisk({ state, spec, preemptions }: JobView): readonly string[] {
  if (state !== 'running' || spec['preemptible'] !== true) return [];
  const before =
    preemptions === 0 ? '' : `, as it was ${preemptions === 1 ? 'once' : `${preemptions} times`}`;
  return [`It can be preempted by a higher-priority job${before}`];
}
