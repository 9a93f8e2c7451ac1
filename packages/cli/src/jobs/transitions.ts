/**
 * What has become of a job since it was last looked at, a line for each step. By its state, not by its events: a reader that was
 * away, or watches a coordinator that was restarted, misses nothing and gets nothing twice. Pure.
 */
import { causeInBrackets } from '@muster/common/causeText';
import { resumeText, signLines } from '@muster/common/signText';
import { isTerminal } from '@muster/common/states';
import type { AttemptView, JobView } from '@muster/common/views';
import { durationText } from '../output/times.ts';
import { nameOf, specOf } from './summary.ts';

/** What a reader knows. */
export interface Reported {
  /** Begins, ends, signs and hangs of attempts. */
  readonly facts: ReadonlySet<string>;
  /** Why it waits, as a kind: how many seconds are left is no change. null: it did not wait. */
  readonly waits: string | null;
}

export const nothingReported: Reported = { facts: new Set(), waits: null };

interface Fact {
  readonly key: string;
  readonly text: string;
}

/** Everything up to now, for a reader who joins in the middle. */
export function allReported(job: JobView): Reported {
  return { facts: new Set(factsOf(job).map(({ key }) => key)), waits: waitOf(job)?.kind ?? null };
}

/** @returns what is new, oldest first, and what is then known */
export function transitions(
  job: JobView,
  reported: Reported,
): { readonly lines: readonly string[]; readonly reported: Reported } {
  const facts = factsOf(job);
  const fresh = facts.filter(({ key }) => !reported.facts.has(key));
  const wait = waitOf(job);
  // The line of the end before has named the time of the next attempt.
  const isPartOfEnd = wait?.kind === 'backoff' && fresh.some(({ key }) => key.endsWith('.ended'));
  const isChange = wait !== null && wait.kind !== reported.waits && !isPartOfEnd;
  return {
    lines: [...fresh.map(({ text }) => text), ...(isChange ? [wait.text] : [])],
    reported: {
      facts: new Set([...reported.facts, ...facts.map(({ key }) => key)]),
      waits: wait?.kind ?? null,
    },
  };
}

/**
 * What went wrong with a job until now, for those who watch many: ends, signs and hangs of its attempts, and a bad end of the
 * job. Each with its name.
 */
export function problemsOf(job: JobView): readonly Fact[] {
  const name = nameOf(job);
  const facts = factsOf(job)
    .filter(({ key }) => !key.endsWith('.began') && !key.endsWith('.resume_confirmed'))
    .map(({ key, text }) => ({ key, text: `${name}: ${text}` }));
  if (job.state !== 'failed' && job.state !== 'cancelled') return facts;
  const why = job.cause === null ? '' : `: ${causeInBrackets(job.cause)}`;
  return [...facts, { key: 'result', text: `${name} ${job.state}${why}` }];
}

function waitOf({ state, pending }: JobView): { readonly kind: string; readonly text: string } | null {
  if (state !== 'queued' || pending === null || pending.kind === 'scheduling') return null;
  const { kind, message, remedy } = pending;
  const what = message.startsWith('waiting for ') ? message : `waiting: ${message}`;
  return { kind, text: kind === 'never_fits' && remedy !== null ? `${what}; ${remedy}` : what };
}

function factsOf(job: JobView): readonly Fact[] {
  const attempts = job.attempts.toSorted((a, b) => a.number - b.number);
  return attempts.flatMap((attempt) => factsOfAttempt(job, attempt, attempt === attempts.at(-1)));
}

function factsOfAttempt(job: JobView, attempt: AttemptView, isNewest: boolean): readonly Fact[] {
  const { number, cause, hungAtMs } = attempt;
  const facts: Fact[] = [];
  const add = (key: string, text: string) => facts.push({ key: `${number}.${key}`, text });
  // Of the last one the result of the job tells.
  const isResult = isNewest && isTerminal(job.state);
  if (attempt.runningAtMs !== null && !isResult) add('began', beginText(attempt));
  for (const sign of attempt.signs) {
    if (sign.kind === 'resume_confirmed') {
      add(sign.kind, `attempt ${number} ${resumeText(attempt)}: its output begins at step ${sign.step}`);
      continue;
    }
    add(`${sign.kind}.${sign.step}`, `attempt ${number}: ${signLines({ signs: [sign] }).join()}`);
  }
  if (hungAtMs !== null && cause?.kind !== 'hung')
    add(`hung.${hungAtMs}`, `attempt ${number}: no progress, it hangs`);
  if (attempt.state === 'ended' && cause !== null && !isResult) add('ended', endText(job, attempt, isNewest));
  return facts;
}

/** `attempt 2 runs on node-1, node-2; offered checkpoint-100 (step 100)`. */
function beginText({ number, tasks, resume }: AttemptView): string {
  const nodes = [...new Set(tasks.map(({ node }) => node))];
  const where = nodes.length > 4 ? `${nodes.length} nodes` : nodes.join(', ');
  if (resume === null) return `attempt ${number} runs on ${where}`;
  const step = resume.step === null ? '' : ` (step ${resume.step})`;
  return `attempt ${number} runs on ${where}; offered ${resume.name}${step}`;
}

/** `attempt 1 failed: CUDA OOM (rank 1). Retry 2/5 in 2 s, MUSTER_BATCH_SCALE=0.5`. */
function endText(job: JobView, { number, cause }: AttemptView, isNewest: boolean): string {
  const isFailure = cause?.kind !== 'preempted' && cause?.kind !== 'cancelled';
  const what = isFailure ? 'failed' : 'ended';
  const end = `attempt ${number} ${what}${cause === null ? '' : `: ${causeInBrackets(cause)}`}`;
  // What comes next is known of the newest only.
  if (!isNewest || job.state !== 'queued') return end;
  const waitMs = job.pending?.waitMs;
  const when = waitMs === undefined ? '' : ` in ${durationText(Math.ceil(waitMs / 1_000) * 1_000)}`;
  const isCounted = isFailure && job.failures > 0;
  const which = isCounted ? `Retry ${job.failures + 1}/${specOf(job).retry.maxAttempts}` : 'Next attempt';
  const scales = [
    job.batchScale === 1 ? null : `MUSTER_BATCH_SCALE=${Number(job.batchScale.toPrecision(6))}`,
    job.lrScale === 1 ? null : `MUSTER_LR_SCALE=${Number(job.lrScale.toPrecision(6))}`,
  ].filter((scale) => scale !== null);
  if (!isCounted && when === '' && scales.length === 0) return end;
  return `${end}. ${[`${which}${when}`, ...scales].join(', ')}`;
}
