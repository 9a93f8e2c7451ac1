import { expect, test } from 'vitest';
import { isShuttingDown, systemSources } from './systemShutdown.ts';

const nowMs = 1_700_000_000_000;

function isStopping(state: string, schedule: string | null): Promise<boolean> {
  const sources = { systemState: async () => state, schedule: async () => schedule, wallMs: () => nowMs };
  return isShuttingDown(sources, 90_000);
}

const scheduled = (inMs: number, more = '') =>
  `USEC=${(nowMs + inMs) * 1_000}\nWARN_WALL=1\nMODE=poweroff\n${more}`;

test.each([
  ['stopping\n', null, true],
  ['running\n', null, false],
  ['degraded\n', null, false],
  // No systemd, or no answer.
  ['', null, false],
  ['offline\n', null, false],
  ['running\n', scheduled(60_000), true],
  ['running\n', scheduled(-5_000), true],
  // `shutdown +60`: anyone who restarts the agent meanwhile means the agent.
  ['running\n', scheduled(3_600_000), false],
  ['running\n', scheduled(60_000, 'WARN_ONLY=1\n'), false],
  ['running\n', 'USEC=\nMODE=poweroff\n', false],
  ['running\n', '\u0000', false],
])(
  'a system that says %j, with the schedule %j, is being shut down: %s',
  async (state, schedule, expected) => {
    expect(await isStopping(state, schedule)).toBe(expected);
  },
);

test('this system answers, whatever it runs, and is not being shut down', async () => {
  expect(
    await isShuttingDown(
      systemSources(() => Date.now()),
      90_000,
    ),
  ).toBe(false);
});
