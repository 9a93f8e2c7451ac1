import { expect, test } from 'vitest';
import { type HealthProblem, readAgentPage, untilHealthy } from './health.ts';

/** Each pause is one second of a clock that only pauses move. */
function after(answers: readonly (HealthProblem | null)[], waitMs: number) {
  let nowMs = 0;
  let asked = 0;
  const times = { monotonicMs: () => nowMs, pause: async () => void (nowMs += 1_000) };
  const problem = async () => answers[Math.min(asked++, answers.length - 1)] ?? null;
  return untilHealthy(problem, waitMs, times).then((found) => ({ found, asked }));
}

test('health is waited for, up to a last look at the end of the time', async () => {
  const away = { what: 'away' };
  expect(await after([null], 0)).toEqual({ found: null, asked: 1 });
  expect(await after([away, away, null], 5_000)).toEqual({ found: null, asked: 3 });
  expect(await after([away], 3_000)).toEqual({ found: 'away', asked: 4 });
  expect(await after([away, { what: 'ended', isFinal: true }], 3_000)).toEqual({ found: 'ended', asked: 2 });
});

test('the page of an agent tells its version, and whether its coordinator has answered', () => {
  const page = 'muster_agent_build_info{version="0.2.0"} 1\n';
  expect(readAgentPage(page)).toEqual({ version: '0.2.0', isInContact: false });
  expect(readAgentPage(`${page}muster_agent_heartbeat_age_seconds 0.4\n`)?.isInContact).toBe(true);
  expect(readAgentPage('another program')).toBeNull();
});
