import { describe, expect, test } from 'vitest';
import { countingBytes } from '../coordinatorFixture.ts';
import type { TokenChain } from '../model.ts';
import { nodeNameOf } from '../modelFixture.ts';
import { judgeToken, keepToken, newChain, offerToken, withdrawToken } from './continuity.ts';
import { Proofs } from './proofs.ts';

const node = nodeNameOf('node-1');
const proofs = new Proofs(new Uint8Array(32));
const random = countingBytes();

const judge = (chain: TokenChain, ...tokens: readonly string[]) => judgeToken(chain, tokens, node, proofs);
const offer = (chain: TokenChain, ...tokens: readonly string[]) =>
  offerToken(chain, tokens, node, random, proofs);

/** A chain whose agent has confirmed this many tokens, with all of them, oldest first. */
function confirmed(count: number) {
  let chain: TokenChain = newChain(random);
  const tokens: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const offered = offer(chain, ...tokens.slice(-1));
    tokens.push(offered.pending);
    chain = keepToken(offered, offered.pending) ?? chain;
  }
  return { chain, tokens };
}

/**
 * Every point at which agent, coordinator or network can fail between a Hello and the next one. `disk` is what the agent's disk
 * has then, `store` what the coordinator's has.
 */
const crashPoints = [
  { when: 'before the offer is stored', disk: 'current', store: 'before' },
  { when: 'after the offer is stored and before it is sent', disk: 'current', store: 'offered' },
  { when: 'after the offer has arrived and before it is on disk', disk: 'current', store: 'offered' },
  { when: 'while the agent writes, which a power cut undoes', disk: 'current', store: 'offered' },
  { when: 'after it is on disk and before the confirmation is sent', disk: 'both', store: 'offered' },
  { when: 'after the confirmation has arrived and before it is stored', disk: 'both', store: 'offered' },
  { when: 'after the confirmation is stored', disk: 'both', store: 'confirmed' },
  { when: 'after the agent said that its disk is full', disk: 'current', store: 'withdrawn' },
  { when: 'after a write that failed at its last step', disk: 'both', store: 'withdrawn' },
  {
    when: 'when an earlier Hello comes late, before the disk has the token',
    disk: 'current',
    store: 'replaced',
  },
  { when: 'when an earlier Hello comes late, after the disk has the token', disk: 'both', store: 'replaced' },
] as const;

describe.each([0, 1, 5])('an agent that has confirmed %d tokens', (count) => {
  test.each(crashPoints)('is admitted after a failure $when', ({ disk, store }) => {
    const { chain, tokens } = confirmed(count);
    const current = tokens.slice(-1);
    const offered = offer(chain, ...current);
    const next = offered.pending;
    const stored = {
      before: chain,
      offered,
      confirmed: keepToken(offered, next),
      withdrawn: withdrawToken(offered, next),
      replaced: offer(offered, ...current),
    }[store];
    const presented = disk === 'both' ? [next, ...current] : current;
    expect(stored).not.toBeNull();
    if (stored === null) return;
    expect(judge(stored, ...presented)).toBe('holder');
    // It gets on from there: what it is offered then is accepted, and what it had before no longer is.
    const again = offer(stored, ...presented);
    const kept = keepToken(again, again.pending);
    expect(kept).not.toBeNull();
    if (kept === null) return;
    expect([judge(kept, again.pending), judge(kept, next, ...current)]).toEqual(['holder', 'spent']);
  });
});

interface Agent {
  /** Newest first. */
  readonly disk: readonly string[];
  /** What its connection was offered, as it would be stored. Null without a connection, or when it is welcomed. */
  readonly offered: readonly string[] | null;
  /** What it has presented on connections that it gave up, and that may arrive late. */
  readonly late: readonly (readonly string[])[];
}

interface World {
  readonly chain: TokenChain;
  readonly agents: readonly Agent[];
  /** True once a token was confirmed that only one of the agents was offered. */
  readonly isSettled: boolean;
}

/** Each thing that can happen next to this agent. A failure of any kind is a lost connection. */
function steps(world: World, index: number): readonly World[] {
  const agent = world.agents[index] as Agent;
  const withAgent = (next: Partial<Agent>, rest: Partial<World> = {}): World => ({
    ...world,
    ...rest,
    agents: world.agents.map((each, at) => (at === index ? { ...agent, ...next } : each)),
  });
  const found: World[] = [];
  const hello = (presented: readonly string[], next: (offered: readonly string[]) => Partial<Agent>) => {
    if (judge(world.chain, ...presented) !== 'holder') return;
    const chain = offer(world.chain, ...presented);
    const isSettled = world.isSettled || chain.current !== world.chain.current;
    const offered = [chain.pending, ...(chain.current === null ? [] : [chain.current])];
    found.push(withAgent(next(offered), { chain, isSettled }));
  };
  hello(agent.disk, (offered) => ({ offered, late: [...agent.late, agent.disk].slice(-2) }));
  for (const presented of agent.late) hello(presented, () => ({}));
  const { offered } = agent;
  if (offered !== null) {
    found.push(withAgent({ offered: null }), withAgent({ disk: offered }));
    const [token = ''] = offered;
    const chain = keepToken(world.chain, token);
    if (chain !== null && agent.disk === offered)
      found.push(withAgent({ offered: null }, { chain, isSettled: true }));
  }
  return found;
}

/** Visits every order of events up to a depth. */
function explore(start: World, depth: number, look: (world: World) => void): number {
  const seen = new Set<string>();
  let front: readonly World[] = [start];
  for (let at = 0; at <= depth; at += 1) {
    const next: World[] = [];
    for (const world of front) {
      look(world);
      for (const [index] of world.agents.entries()) {
        for (const after of steps(world, index)) {
          const key = JSON.stringify(after).replaceAll(/\.(\d+)\.[\w-]+\.[\w-]+/g, '.$1');
          if (seen.has(key)) continue;
          seen.add(key);
          next.push(after);
        }
      }
    }
    front = next;
  }
  return seen.size;
}

test.each([0, 2])('one agent is admitted in every order of events, after %d tokens', (count) => {
  const { chain, tokens } = confirmed(count);
  const start: World = {
    chain,
    agents: [{ disk: tokens.slice(-1), offered: null, late: [] }],
    isSettled: false,
  };
  const states = explore(start, 7, ({ chain: stored, agents: [only] }) =>
    expect(judge(stored, ...(only?.disk ?? []))).toBe('holder'),
  );
  expect(states).toBeGreaterThan(20);
});

test.each([0, 2])('of two copies at most one is admitted once one is confirmed, after %d tokens', (count) => {
  const { chain, tokens } = confirmed(count);
  const copy: Agent = { disk: tokens.slice(-1), offered: null, late: [] };
  let settled = 0;
  const states = explore({ chain, agents: [copy, copy], isSettled: false }, 6, (world) => {
    const holders = world.agents.filter(({ disk }) => judge(world.chain, ...disk) === 'holder');
    // Neither is locked out before there is one that works.
    if (!world.isSettled) expect(holders).toHaveLength(2);
    else expect(holders.length).toBe(1);
    settled += world.isSettled ? 1 : 0;
  });
  expect([states > 100, settled > 50]).toEqual([true, true]);
});

test('a token that the store does not know yet and can prove shows a store that was restored', () => {
  const { chain, tokens } = confirmed(3);
  const [first, second, third] = tokens as [string, string, string];
  const restored: TokenChain = { ...chain, issued: 2, current: second };
  expect(judge(restored, third)).toBe('newer');
  const next = offer(restored, third);
  expect([next.issued, next.current]).toEqual([4, third]);
  expect([judge(next, first), judge(next, second), judge(next, third)]).toEqual(['spent', 'spent', 'holder']);
});

test('an offer that was replaced before the backup and taken after it is newer, and no copy', () => {
  const { chain, tokens } = confirmed(1);
  const inBackup = offer(chain, ...tokens);
  const later = offer(inBackup, ...tokens);
  expect(judge(inBackup, later.pending)).toBe('newer');
});

test('tokens of another node, another store or another join prove nothing', () => {
  const { chain } = confirmed(3);
  const forged = [`${chain.id}.9.salt.${'x'.repeat(22)}`, 'x', '', confirmed(5).tokens[4] ?? ''];
  for (const tokens of [[], forged, ...forged.map((token) => [token])])
    expect(judge(chain, ...tokens)).toBe('none');
  const elsewhere = offerToken({ ...chain, issued: 8 }, [], nodeNameOf('node-2'), random, proofs);
  expect(judge(chain, elsewhere.pending)).toBe('none');
  for (const token of forged) expect(judge(newChain(random), token)).toBe('holder');
});
