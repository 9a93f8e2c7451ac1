import { expect, test } from 'vitest';
import { addCredential, startTestCoordinator } from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { removeExpiredTokens, storeLastUse } from './credentialUse.ts';

const hourMs = 60 * 60_000;

test('join tokens are removed as soon as they expire, used or not, and nothing else is', async () => {
  const memory = new Memory('test');
  const join = (id: string, expiresAtMs: number, usedFor: string | null = null) => {
    const secretHash = `hash of ${id}`;
    addCredential(memory, { id, kind: 'join', subject: 'node-1', secretHash, expiresAtMs, usedFor });
  };
  join('unused', someMs);
  join('used', someMs, 'hash of agent');
  join('newer', someMs + 1);
  const agent = { id: 'agent', kind: 'agent', subject: 'node-1', secretHash: 'hash of agent' } as const;
  addCredential(memory, { ...agent, expiresAtMs: someMs });
  const { state, loop, close } = await startTestCoordinator({ memory });
  const known = () => [...state.credentials.values()].map(({ id }) => id).sort();
  const pass = (nowMs: number) => Promise.all(removeExpiredTokens(state, loop, nowMs));

  await pass(someMs - 1);
  expect(known()).toEqual(['admin', 'agent', 'newer', 'unused', 'used']);
  await Promise.all([pass(someMs), pass(someMs)]);
  expect(known()).toEqual(['admin', 'agent', 'newer']);
  expect(
    state.credentialOf('hash of unused'),
    'a clock that is set back brings nothing back',
  ).toBeUndefined();
  const stored = await new MemoryStore(memory).load();
  expect(stored.credentials.map(({ id }) => id)).toEqual(['admin', 'agent', 'newer']);
  const events = [...memory.events.values()].filter(({ kind }) => kind === 'token.expired');
  expect(
    events.map(({ data }) => data['id']),
    'of one that was used nobody waits for word',
  ).toEqual(['unused']);
  await close();
});

test('the moment of the last use is stored, and again once it is an hour old', async () => {
  const { state, loop, gate, api, clock, memory, close } = await startTestCoordinator();
  const pass = () => Promise.all(storeLastUse(state, gate, loop));
  const stored = () => memory.credentials.get('admin')?.lastUsedAtMs;
  await api.getCluster();
  const firstMs = clock.wallMs();
  await pass();
  expect(stored()).toBe(firstMs);

  clock.nowMs += hourMs - 1;
  await api.getCluster();
  await pass();
  expect(stored()).toBe(firstMs);
  expect((await api.listCredentials())[0]).toMatchObject({ id: 'admin', lastUsedAtMs: clock.wallMs() });
  clock.nowMs += 1;
  await api.getCluster();
  await pass();
  expect(stored()).toBe(clock.wallMs());
  await close();
});
