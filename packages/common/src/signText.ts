/** What was noticed about the training of a job, in few words. Pure. */
import { type DivergenceKind, isResumeSign } from './training.ts';
import type { AttemptSign, AttemptView, JobView } from './views.ts';

/** How it stands in a column of states. */
const marks: Readonly<Record<DivergenceKind | 'resume_ignored', string>> = {
  nan_loss: 'NaN',
  loss_divergence: 'diverged',
  loss_scale_exhausted: 'overflow',
  resume_ignored: 'resume ignored',
};

/** What to write in a program that does not load its checkpoint. */
export const resumeAdvice =
  'Load the checkpoint that MUSTER_RESUME_FROM names, or pass it in the command: {resume:--resume_from=} (docs/checkpoints.md).';

/** A loss that has jumped may come back: it is reported, and marks nothing. Nor does an improvement. */
function isSerious(sign: AttemptSign): sign is AttemptSign & { readonly kind: keyof typeof marks } {
  return sign.kind !== 'loss_spike' && sign.kind !== 'resume_confirmed';
}

function newestAttempt(attempts: readonly AttemptView[]): AttemptView | null {
  return attempts.reduce<AttemptView | null>(
    (newest, attempt) => (newest === null || attempt.number > newest.number ? attempt : newest),
    null,
  );
}

/** The first of each kind: what follows it is the same trouble. */
function firstOfEach(signs: readonly AttemptSign[]): readonly AttemptSign[] {
  return signs.filter(({ kind }, index) => signs.findIndex((other) => other.kind === kind) === index);
}

/** A hang that ended the attempt is its cause, and reported as that. */
function hasHung({ hungAtMs, hangs, cause }: AttemptView): boolean {
  return hangs || (hungAtMs !== null && cause?.kind !== 'hung');
}

/** Of its newest attempt: `NaN`, `diverged`, `overflow`, `resume ignored`, `hangs`, `hung`. Empty: all is well, as far as one can tell. */
export function signMarks(job: Pick<JobView, 'attempts'>): readonly string[] {
  const attempt = newestAttempt(job.attempts);
  if (attempt === null) return [];
  return [
    ...firstOfEach(attempt.signs)
      .filter(isSerious)
      .map(({ kind }) => marks[kind]),
    ...(hasHung(attempt) ? [attempt.hangs ? 'hangs' : 'hung'] : []),
  ];
}

/** Of its newest attempt: `loss NaN since step 80`, `hangs now`. What may still come back is not among them. */
export function signSummary(job: Pick<JobView, 'attempts' | 'training'>): readonly string[] {
  const attempt = newestAttempt(job.attempts);
  if (attempt === null) return [];
  const isNanStill = job.training?.latest.train_loss === undefined;
  return [
    ...firstOfEach(attempt.signs)
      .filter(isSerious)
      .map((sign) => signInShort(sign, isNanStill)),
    ...(hasHung(attempt) ? [attempt.hangs ? 'hangs now' : 'hung for a time'] : []),
  ];
}

/**
 * `loss NaN since step 80`.
 * @param lasts of a NaN: no finite loss has come since
 */
export function signInShort({ kind, step }: AttemptSign, lasts = false): string {
  const at = step === null ? '' : ` at step ${step}`;
  switch (kind) {
    case 'nan_loss':
      return lasts && step !== null ? `loss NaN since step ${step}` : `loss NaN${at}`;
    case 'loss_divergence':
      return `loss diverged${at}`;
    case 'loss_spike':
      return `loss jumped${at}`;
    case 'loss_scale_exhausted':
      return `gradients overflow at every loss scale${step === null ? '' : ` since step ${step}`}`;
    case 'resume_ignored':
      return `checkpoint not loaded: the output begins${at}`;
    case 'resume_confirmed':
      return `resumed: the output begins${at}`;
    default: {
      const never: never = kind;
      return never;
    }
  }
}

/** Every problem of an attempt, spikes included: `loss NaN at step 80 (last normal step: 70)`. */
export function signLines({ signs }: Pick<AttemptView, 'signs'>): readonly string[] {
  const problems = signs.filter(({ kind }) => kind !== 'resume_confirmed');
  return firstOfEach(problems).map((sign) => {
    const until = sign.lastGoodStep === null ? '' : ` (last normal step: ${sign.lastGoodStep})`;
    return `${signInShort(sign)}${until}`;
  });
}

/**
 * What is known of the checkpoint that an attempt was offered: `offered checkpoint-100 (step 100)` until the output tells
 * more, then `resumed from checkpoint-100 (step 100)`, or `offered checkpoint-100 (step 100), not loaded: …`. null: it
 * was offered none.
 */
export function resumeText({ resume, signs }: Pick<AttemptView, 'resume' | 'signs'>): string | null {
  if (resume === null) return null;
  const { name, step, why } = resume;
  const checkpoint = `${step === null ? name : `${name} (step ${step})`}${why === undefined ? '' : `, ${why}`}`;
  const sign = signs.find(({ kind }) => isResumeSign(kind));
  if (sign === undefined) return `offered ${checkpoint}`;
  const at = sign.step === null ? '' : ` at step ${sign.step}`;
  if (sign.kind === 'resume_confirmed') return `resumed from ${checkpoint}`;
  return `offered ${checkpoint}, not loaded: the output begins${at}`;
}
