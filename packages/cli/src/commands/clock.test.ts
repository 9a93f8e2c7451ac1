import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { run } from '../testing/testContext.ts';

const nowMs = Date.parse('2026-03-01T12:00:00Z');
const agreed = {
  systemWallMs: nowMs,
  trustedWallMs: nowMs,
  basis: 'confirmed',
  agentsWallMs: nowMs,
} as const;
const stepped = {
  systemWallMs: nowMs + 100 * 86_400_000,
  trustedWallMs: nowMs,
  basis: 'crossed',
  isSynchronised: false,
  steppedSinceMs: nowMs - 60_000,
} as const;

test('clock shows both clocks and what the trusted one rests on', async () => {
  const { stdout, requests } = await run(['clock'], { GetClock: () => agreed });
  expect(requests).toEqual([{ method: 'GetClock', request: {} }]);
  expect(stdout).toBe(
    'System clock   2026-03-01T12:00:00Z\n' +
      'Trusted clock  2026-03-01T12:00:00Z\n' +
      'Difference     none\n' +
      'Source         CLOCK_BOOTTIME, which no change of the system clock moves\n' +
      'Kernel         was not asked\n' +
      'Agents         agree with the trusted clock\n' +
      'Stepped        no\n',
  );
});

test('a clock that was stepped is shown with its difference and with the command that accepts it', async () => {
  const { stdout } = await run(['clock'], { GetClock: () => stepped });
  expect(stdout).toMatch(/Difference +the system clock is 100 d ahead\n/);
  expect(stdout).toMatch(/Kernel +says that its clock is not synchronised\n/);
  expect(stdout).toMatch(/Stepped +since 2026-03-01T11:59:00Z of the trusted clock\n/);
  expect(stdout).toContain('Nothing is removed');
  expect(stdout).toMatch(/muster clock accept\n$/);
});

test('clock accept asks for it, and prints what is then trusted', async () => {
  const { stdout, requests } = await run(['clock', 'accept', '-o', 'json'], { AcceptClock: () => agreed });
  expect(requests).toEqual([{ method: 'AcceptClock', request: {} }]);
  expect(JSON.parse(stdout)).toMatchObject({ trustedWallMs: nowMs, steppedSinceMs: null });
  expect(await run(['clock', 'set'], {})).toMatchObject({ exitCode: exitCodes.usage, requests: [] });
});
