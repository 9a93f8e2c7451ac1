import { expect, test } from 'vitest';
import { causeOf } from './cause.ts';
import { resumeText, signInShort, signLines, signMarks, signSummary } from './signText.ts';
import type { AttemptView, JobView } from './views.ts';

const nan = { kind: 'nan_loss', step: 80, lastGoodStep: 70 } as const;
const spike = { kind: 'loss_spike', step: 60, lastGoodStep: 59 } as const;

function anAttempt(number: number, fields: Partial<AttemptView> = {}): AttemptView {
  return {
    number,
    state: 'running',
    tasks: [],
    cause: null,
    allocatedAtMs: 1,
    runningAtMs: 1,
    endedAtMs: null,
    masterAddr: null,
    masterPort: null,
    gpuUsage: null,
    resume: null,
    leaseMs: null,
    signs: [],
    hungAtMs: null,
    firstStepAtMs: null,
    hangs: false,
    ...fields,
  };
}

function jobOf(latest: Readonly<Record<string, number>>, ...attempts: readonly AttemptView[]) {
  const training = { framework: null, latest, totalSteps: null, etaMs: null, rows: 1, atMs: 1 };
  return { attempts, training } satisfies Pick<JobView, 'attempts' | 'training'>;
}

test('only the newest attempt marks a job, each kind once, and a jump that may come back does not', () => {
  const later = { ...nan, step: 120 };
  const job = jobOf({}, anAttempt(2, { signs: [spike, nan, later] }), anAttempt(1, { signs: [nan] }));
  expect(signMarks(job)).toEqual(['NaN']);
  expect(signSummary(job)).toEqual(['loss NaN since step 80']);
  expect(signMarks(jobOf({}, anAttempt(1, { signs: [nan] }), anAttempt(2)))).toEqual([]);
  expect(signMarks(jobOf({}))).toEqual([]);
});

test('a resume is offered until the output shows what became of it', () => {
  const resume = { name: 'step-40.json', step: 40 };
  const at = (kind: 'resume_confirmed' | 'resume_ignored', step: number) =>
    anAttempt(2, { resume, signs: [{ kind, step, lastGoodStep: null }] });
  expect(resumeText(anAttempt(1))).toBeNull();
  expect(resumeText(anAttempt(2, { resume }))).toBe('offered step-40.json (step 40)');
  expect(resumeText(anAttempt(2, { resume: { name: 'ckpt.pt', step: null } }))).toBe('offered ckpt.pt');
  const why = 'found on disk; node-1 had reported step 6';
  expect(resumeText(anAttempt(2, { resume: { name: 'ckpt.pt', step: 25, why } }))).toBe(
    'offered ckpt.pt (step 25), found on disk; node-1 had reported step 6',
  );

  const confirmed = at('resume_confirmed', 41);
  expect(resumeText(confirmed)).toBe('resumed from step-40.json (step 40)');
  expect(signMarks(jobOf({}, confirmed))).toEqual([]);
  expect(signSummary(jobOf({}, confirmed))).toEqual([]);
  expect(signLines(confirmed)).toEqual([]);

  const ignored = at('resume_ignored', 0);
  expect(resumeText(ignored)).toBe('offered step-40.json (step 40), not loaded: the output begins at step 0');
  expect(signMarks(jobOf({}, ignored))).toEqual(['resume ignored']);
  expect(signSummary(jobOf({}, ignored))).toEqual(['checkpoint not loaded: the output begins at step 0']);
});

test('a loss that is a number again is not NaN since', () => {
  expect(signSummary(jobOf({ train_loss: 2 }, anAttempt(1, { signs: [nan] })))).toEqual([
    'loss NaN at step 80',
  ]);
});

test('a hang is reported while it lasts and afterwards, unless it is the cause of the end', () => {
  const cause = causeOf('hung', 'no progress for 47 s');
  const signsOf = (fields: Partial<AttemptView>) => {
    const job = jobOf({}, anAttempt(1, fields));
    return [...signMarks(job), ...signSummary(job)];
  };
  expect(signsOf({ hungAtMs: 5, hangs: true })).toEqual(['hangs', 'hangs now']);
  expect(signsOf({ hungAtMs: 5 })).toEqual(['hung', 'hung for a time']);
  expect(signsOf({ hungAtMs: 5, state: 'ended', cause })).toEqual([]);
});

test('every sign has words, and says where all was well', () => {
  expect(signLines({ signs: [spike, nan] })).toEqual([
    'loss jumped at step 60 (last normal step: 59)',
    'loss NaN at step 80 (last normal step: 70)',
  ]);
  expect(signInShort({ kind: 'loss_divergence', step: 9, lastGoodStep: null })).toBe(
    'loss diverged at step 9',
  );
  expect(signInShort({ kind: 'loss_scale_exhausted', step: null, lastGoodStep: null })).toBe(
    'gradients overflow at every loss scale',
  );
  expect(signInShort({ ...nan, step: null }, true)).toBe('loss NaN');
});
