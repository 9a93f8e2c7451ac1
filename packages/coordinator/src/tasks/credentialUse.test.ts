import { expect, test } from 'vitest';
import { addCredential, startTestCoordinator } from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { removeOldJoinTokens } from './oldJoinTokens.ts';

const dayMs = 24 * 60 * 60_000;

test('join tokens are removed a day after they expired, used or not, and nothing else is', async () => {
  const memory = new Memory('test');
  const join = (id: string, expiresAtMs: number, usedFor: string | null = null) =>
    addCredential(memory, {
      id,
      kind: 'join',
      subject: 'node-1',
      secretHash: `hash of ${id}`,
      expiresAtMs,
      usedFor,
    });
  join('unused', someMs);
  join('used', someMs, 'hash of agent');
  join('newer', someMs + 1);
  addCredential(memory, { id: 'agent', kind: 'agent', subject: 'node-1', secretHash: 'hash of agent' });
  const { state, loop, close } = await startTestCoordinator({ memory });
  const known = () => [...state.credentials.values()].map(({ id }) => id).sort();
  const pass = (nowMs: number) => Promise.all(removeOldJoinTokens(state, loop, nowMs));

  await pass(someMs + dayMs - 1);
  expect(known()).toEqual(['admin', 'agent', 'newer', 'unused', 'used']);
  await Promise.all([pass(someMs + dayMs), pass(someMs + dayMs)]);
  expect(known()).toEqual(['admin', 'agent', 'newer']);
  const stored = await new MemoryStore(memory).load();
  expect(stored.credentials.map(({ id }) => id)).toEqual(['admin', 'agent', 'newer']);
  await close();
});
