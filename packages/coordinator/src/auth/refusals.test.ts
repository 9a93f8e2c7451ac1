import type { Logger } from '@muster/common/log';
import { silentLogger } from '@muster/common/log';
import { expect, test } from 'vitest';
import { Refusals } from './refusals.ts';

function someRefusals() {
  const lines: Record<string, unknown>[] = [];
  const log: Logger = { ...silentLogger, warn: (fields: unknown) => void lines.push(fields as never) };
  const clock = { nowMs: 0 };
  const refusals = new Refusals({ log, monotonicMs: () => clock.nowMs });
  return { refusals, lines, clock };
}

const refusal = {
  kind: 'unauthenticated',
  method: '/muster.v1.Muster/GetCluster',
  peer: '192.0.2.1',
  by: null,
} as const;

test('a refusal is logged with kind, method and peer', () => {
  const { refusals, lines } = someRefusals();
  refusals.note(refusal);
  refusals.note({ ...refusal, kind: 'permission_denied', by: 'agent:gpu-1:0f' });
  expect(lines).toEqual([refusal, { ...refusal, kind: 'permission_denied', by: 'agent:gpu-1:0f' }]);
});

test('a flood fills no log: later lines say how many were left out, also when the flood is over', () => {
  const { refusals, lines, clock } = someRefusals();
  for (let count = 0; count < 10_000; count += 1) refusals.note(refusal);
  expect(lines).toHaveLength(20);
  expect(refusals.counts).toMatchObject({ unauthenticated: 10_000 });
  refusals.run();
  expect(lines, 'not at once').toHaveLength(20);
  clock.nowMs += 2_000;
  refusals.note(refusal);
  expect(lines.at(-1)).toEqual({ ...refusal, unlogged: 9_980 });
  refusals.note(refusal);
  clock.nowMs += 2_000;
  refusals.run();
  expect(lines.at(-1)).toEqual({ unlogged: 1 });
  clock.nowMs += 60_000;
  refusals.run();
  expect(lines).toHaveLength(22);
});

test('an address may fail now and then; others are not held to account for it', () => {
  const { refusals, clock } = someRefusals();
  const failing = (peer: string) =>
    Array.from({ length: 1_000 }, () => refusals.mayFail(peer)).filter(Boolean);
  expect(failing('192.0.2.1')).toHaveLength(500);
  expect(failing('192.0.2.2')).toHaveLength(500);
  clock.nowMs += 5_000;
  expect(failing('192.0.2.1')).toHaveLength(50);
});

test('what is remembered of addresses is bounded, and the busiest is not forgotten for it', () => {
  const { refusals } = someRefusals();
  while (refusals.mayFail('192.0.2.1'));
  for (let peer = 0; peer < 5_000; peer += 1) {
    refusals.mayFail(`2001:db8::${peer.toString(16)}`);
    expect(refusals.mayFail('192.0.2.1')).toBe(false);
  }
});
