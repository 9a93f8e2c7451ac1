import { expect, test } from 'vitest';
import { anAttempt, nodeNameOf } from '../modelFixture.ts';
import { GrantedLeases } from './grantedLeases.ts';
import { fencedAfterMs } from './leases.ts';

const settings = { leaseMs: 6_000, fenceMs: 2_000, marginMs: 2_000, clockRateError: 0.005 };
const node = nodeNameOf('node-1');
const after = (leaseMs: number) => fencedAfterMs(settings, leaseMs);

/** A node that was heard at 1 s by a coordinator that began at 0. */
function someLeases(given: { heardMs?: number | null; leftMs?: number; fencedSinceStartAtMs?: number } = {}) {
  const world = { nowMs: 0, heardMs: 1_000 as number | null, leftMs: 0, fencedSinceStartAtMs: 0, ...given };
  const grantedLeases = new GrantedLeases({
    settings,
    monotonicMs: () => world.nowMs,
    lastContactMs: () => world.heardMs,
    maintenance: {
      leftMs: () => world.leftMs,
      get fencedSinceStartAtMs() {
        return world.fencedSinceStartAtMs;
      },
    },
  });
  return { grantedLeases, world };
}

const attempt = anAttempt(1, { leaseMs: 6_000 });
const held = anAttempt(1, { leaseMs: null });

test('an attempt gets its own lease, and T2 counts from the last contact with the node', () => {
  const { grantedLeases, world } = someLeases();
  expect(grantedLeases.grant(node, attempt)).toBe(6_000);
  expect(grantedLeases.fencedAtMs(node, attempt)).toBe(1_000 + after(6_000));
  world.heardMs = 5_000;
  expect(grantedLeases.fencedAtMs(node, attempt)).toBe(5_000 + after(6_000));
  expect(grantedLeases.fencedAtMs(node, { leaseMs: 86_400_000 })).toBe(5_000 + after(86_400_000));
  expect(grantedLeases.granted).toBe(1);
});

test('one without a lease is never fenced, in a maintenance neither', () => {
  const { grantedLeases } = someLeases({ leftMs: 60_000 });
  expect(grantedLeases.grant(node, held)).toBe(0);
  expect(grantedLeases.fencedAtMs(node, held)).toBeNull();
});

test('in a maintenance leases are longer, never shorter', () => {
  const { grantedLeases, world } = someLeases({ leftMs: 7_200_000 });
  expect(grantedLeases.grant(node, attempt)).toBe(7_200_000);
  world.leftMs = 5_000;
  expect(grantedLeases.grant(node, attempt)).toBe(6_000);
});

test('a long lease cannot be taken back: shorter ones that follow do not bring T2 nearer', () => {
  const { grantedLeases, world } = someLeases({ leftMs: 7_200_000 });
  grantedLeases.grant(node, attempt);
  Object.assign(world, { leftMs: 0, heardMs: 2_000 });
  expect(grantedLeases.grant(node, attempt)).toBe(6_000);
  expect(grantedLeases.fencedAtMs(node, attempt)).toBe(1_000 + after(7_200_000));
  expect(grantedLeases.fencedAtMs(nodeNameOf('node-2'), attempt), 'which was granted none').toBe(
    2_000 + after(6_000),
  );
});

test('of a maintenance that a coordinator before us granted, the longest counts for every node from our start on', () => {
  const { grantedLeases } = someLeases({ heardMs: null, fencedSinceStartAtMs: after(7_200_000) });
  expect(grantedLeases.fencedAtMs(node, attempt)).toBe(after(7_200_000));
});

test('a node without contact counts as having responded at our start', () => {
  const { grantedLeases } = someLeases({ heardMs: null });
  expect(grantedLeases.fencedAtMs(node, attempt)).toBe(after(6_000));
});
