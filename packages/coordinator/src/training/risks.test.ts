import { expect, test } from 'vitest';
import { aCheckpoint, someMs } from '../modelFixture.ts';
import { risksOf, type TrainingSurroundings } from './risks.ts';
import { aJobView, anAttemptView, minuteMs, nowMs } from './trainingFixture.ts';

const calm: TrainingSurroundings = { hangs: [], signs: [], drains: [] };
const risks = (
  fields: Parameters<typeof aJobView>[0] = {},
  around: Partial<TrainingSurroundings> = {},
  atMs = nowMs,
) => risksOf(aJobView(fields), { ...calm, ...around }, atMs);

test('a job that saves and goes on is at no risk', () => {
  expect(risks()).toEqual([]);
});

test('standstill, signs and nodes that are to be left come first', () => {
  const hang = { quietForMs: 10 * minuteMs, usualMs: 2_000, gpus: 'pinned', rank: null } as const;
  const sign = { kind: 'nan_loss', step: 7, lastGoodStep: 6, rank: 3, line: 12, text: 'loss *nan*' } as const;
  const bare = { ...sign, step: null, lastGoodStep: null, rank: null, line: 1, text: 'x' };
  const drain = { reason: 'new fans', sinceMs: someMs, deadlineMs: nowMs + 5 * minuteMs };
  const found = risks(
    { checkpoints: [aCheckpoint(1, { verdict: 'corrupt', savedAtMs: nowMs })] },
    {
      hangs: [
        { nodeRank: 1, sign: hang },
        { nodeRank: 2, sign: { ...hang, rank: 17, gpus: 'idle' } },
      ],
      signs: [
        { nodeRank: 0, sign },
        { nodeRank: 1, sign: bare },
      ],
      drains: [
        { node: 'node-1', drain },
        { node: 'node-2', drain: { ...drain, reason: '', deadlineMs: null } },
      ],
    },
  );
  expect(found.slice(0, 7)).toEqual([
    'Node rank 1 hangs: no activity for 10 min (usually 2 s), its GPUs busy without computing',
    'Rank 17 hangs: no activity for 10 min (usually 2 s), its GPUs idle',
    '`nan_loss` (rank 3, step 7, last normal step: 6, line 12): loss \\*nan\\*',
    '`nan_loss` (node rank 1, line 1): x',
    'node-1 is being drained, deadline in 5 min: new fans',
    'node-2 is being drained',
    '`checkpoint-1` is corrupt',
  ]);
});

test('what was noticed of the newest attempt stays a risk once nobody tells of it any more', () => {
  const nan = { kind: 'nan_loss', step: 80, lastGoodStep: 70 } as const;
  const hung = anAttemptView(2, { cause: null, signs: [nan], hungAtMs: someMs });
  expect(risks({ attempts: [anAttemptView(1, { signs: [nan] }), hung] })).toEqual([
    'loss NaN at step 80 (last normal step: 70)',
    `It hung at ${new Date(someMs).toISOString()}`,
  ]);
  const sign = { ...nan, rank: 3, line: 12, text: 'loss nan' };
  const around = { signs: [{ nodeRank: 0, sign }] };
  expect(risks({ attempts: [hung] }, around).filter((risk) => risk.includes('nan'))).toHaveLength(1);
});

test('of bad checkpoints the newest five are named', () => {
  const checkpoints = Array.from({ length: 8 }, (_, index) =>
    aCheckpoint(index, index % 2 === 0 ? { suspect: true } : { verdict: 'corrupt', problem: 'cut off' }),
  );
  const good = aCheckpoint(9, { savedAtMs: nowMs });
  const found = risks({ checkpoints: [...checkpoints, good] });
  expect(found).toHaveLength(6);
  expect(found.slice(0, 2)).toEqual([
    '`checkpoint-7` is corrupt: cut off',
    '`checkpoint-6` is suspect: attempts that were offered it failed in the same way',
  ]);
  expect(found[5]).toBe('3 more checkpoints are corrupt or suspect');
});

const savedAt = (...minutes: readonly number[]) =>
  minutes.map((minute) => aCheckpoint(minute, { savedAtMs: someMs + minute * minuteMs }));
test.each<[string, ReturnType<typeof savedAt>, string | null]>([
  ['never saved in an hour', [], '1 h'],
  ['saved once, less than an hour ago', savedAt(1), null],
  ['saves every two minutes, and has not for nine', savedAt(47, 49, 51), null],
  ['saves every two minutes, and has not for ten', savedAt(46, 48, 50), '10 min'],
  ['saves every fifteen minutes, and has not for forty', savedAt(-10, 5, 20), null],
  ['saves every ten minutes, and has not for forty', savedAt(0, 10, 20), '40 min'],
  [
    'saved only what is not verified',
    savedAt(50).map((each) => ({ ...each, verdict: 'unverified' as const })),
    '1 h',
  ],
])('a job that %s', (_, checkpoints, unsaved) => {
  const found = risks({ checkpoints });
  if (unsaved === null) expect(found).toEqual([]);
  else expect(found).toEqual([expect.stringContaining(`No verified checkpoint for ${unsaved}:`)]);
  expect(risks({ checkpoints, state: 'queued' }), 'of one that waits nothing is lost any more').toEqual([]);
});

test('that it may be preempted, and that its breaker is open', () => {
  const spec = { preemptible: true };
  expect(risks({ spec })).toEqual(['It can be preempted by a higher-priority job']);
  expect(risks({ spec, preemptions: 2 })[0]).toMatch(/as it was 2 times$/);
  expect(risks({ spec, state: 'queued' })).toEqual([]);
  const pending = { kind: 'circuit_open', message: 'three failures in a row', remedy: null } as const;
  expect(risks({ state: 'queued', pending })).toEqual([
    'The circuit breaker is open: three failures in a row',
  ]);
});
