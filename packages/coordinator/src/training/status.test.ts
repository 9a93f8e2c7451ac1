import { causeOf } from '@muster/common/cause';
import { expect, test } from 'vitest';
import { aCheckpoint } from '../modelFixture.ts';
import type { TrainingSurroundings } from './risks.ts';
import { trainingStatus } from './status.ts';
import { aJobView, anAttemptView, minuteMs, nowMs, someProgress } from './trainingFixture.ts';

const calm: TrainingSurroundings = { hangs: [], signs: [], drains: [] };

test('a job that trains, on one page', () => {
  expect(trainingStatus(aJobView(), calm, nowMs)).toBe(`# train

\`job_000000000001\` is **running** (as of ${new Date(nowMs).toISOString()})

## Training

- Step: 500 of 1000 (50 %)
- Loss: 2.34568
- Eval loss: 2.5
- Learning rate: 0.0003
- Speed: 1024 samples/s
- Time left: 2 h 5 min
- Last contact: 5 s ago

## Last checkpoint

- \`checkpoint-500\` at step 500, 2.2 GiB
- Saved: 5 min ago
- Verdict: verified (quick)

## Attempts

| Attempt | State | From | Ran | Cause |
| --- | --- | --- | --- | --- |
| 2 | running | offered checkpoint-250 (step 250) | 1 h |  |
| 1 | ended | the beginning | 15 min | \`cuda_oom\` CUDA out of memory |

## GPU hours

- Productive: 10.00
- Lost to failures (\`cuda_oom\`): 1.25

## Risks

None detected.
`);
});

test('a job of which nothing is known yet says so', () => {
  const pending = { kind: 'no_capacity', message: 'no node has *8* GPUs', remedy: null } as const;
  const bare = { attempts: [], checkpoints: [], training: null, ledger: [] };
  const page = trainingStatus(
    aJobView({ state: 'queued', pending: { ...pending, kind: 'scheduling' }, ...bare }),
    calm,
    nowMs,
  );
  expect(page).toContain('is **queued**: no node has \\*8\\* GPUs (as of');
  for (const words of ['Nothing was read.', 'There is none.', 'None yet.', 'None were used.'])
    expect(page).toContain(words);
});

test('a program that does not say how far it goes has no percentage, and one that says nothing no line', () => {
  const training = someProgress({
    latest: { step: 7, tokens_per_second: 5, step_seconds: 0.5 },
    totalSteps: null,
    etaMs: null,
  });
  const page = trainingStatus(aJobView({ training }), calm, nowMs);
  expect(page).toContain('- Step: 7\n- Speed: 5 tokens/s, 500 ms per step\n- Last contact');
  expect(page).not.toContain('Loss');
  expect(trainingStatus(aJobView({ training: someProgress({ totalSteps: 0 }) }), calm, nowMs)).toContain(
    '- Step: 500\n',
  );
});

test('of many attempts the last twenty are shown, and names cannot break the table', () => {
  const cause = causeOf('exit_code', 'a | b\nc');
  const attempts = Array.from({ length: 25 }, (_, index) =>
    anAttemptView(index + 1, { cause, runningAtMs: null }),
  );
  const page = trainingStatus(aJobView({ name: '# big\n\n## Risks', attempts }), calm, nowMs);
  expect(page.match(/^\| \d+ \|.*$/gm)).toHaveLength(20);
  expect(page).toContain('| 25 | ended | the beginning |  | `exit_code` a \\| b c |');
  expect(page).toContain('and 5 earlier');
  expect(page.match(/^# .*$/gm)).toEqual(['# \\# big \\#\\# Risks']);
});

test('a checkpoint says what is wrong with it; one that nobody looked into has no depth', () => {
  const corrupt = aCheckpoint(null, {
    verdict: 'unverified',
    depth: null,
    problem: 'an unknown format',
    savedAtMs: nowMs - minuteMs,
  });
  const page = trainingStatus(aJobView({ checkpoints: [aCheckpoint(1), corrupt] }), calm, nowMs);
  expect(page).toContain(
    '- `ckpt.pt`, 1.0 MiB\n- Saved: 1 min ago\n- Verdict: unverified: an unknown format\n',
  );
});
