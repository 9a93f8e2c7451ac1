/** What every store keeps of nodes, credentials, users and projects: part of its contract. */
import type { User } from '@muster/common/people';
import { describe, expect, it } from 'vitest';
import { aNode, nodeNameOf, someMs } from '../modelFixture.ts';
import { type Batch, emptyBatch, type Store } from './store.ts';
import { aCredential, anEvent } from './storeFixture.ts';

/** @param reopened what the store keeps, as it is after a restart */
export function describeCredentials(
  commit: (batch: Partial<Batch>) => Promise<void>,
  reopened: () => Promise<Store>,
): void {
  describe('of credentials, nodes and people keeps', () => {
    it('of a removed node only where the numbers of its events go on', async () => {
      const nodes = [aNode('node-1'), aNode('node-2')];
      await commit({ nodes, events: [anEvent(1, 'node-1', 1), anEvent(2, 'node-2', 1)] });
      await commit({ removedNodes: [nodeNameOf('node-1')], events: [anEvent(3, 'node-1', 2)] });
      const snapshot = await (await reopened()).load();
      expect(snapshot.nodes.map(({ name }) => name)).toEqual(['node-2']);
      expect(Object.fromEntries(snapshot.subjectSeqs)).toEqual({ 'node-1': 2, 'node-2': 1 });
    });

    it('a node that has the name of a removed one', async () => {
      await commit({ nodes: [aNode('node-1')] });
      await commit({ removedNodes: [nodeNameOf('node-1')] });
      await commit({ nodes: [aNode('node-1')] });
      expect((await (await reopened()).load()).nodes).toEqual([aNode('node-1')]);
    });

    it('when a credential was used, what it is renewed to and what it replaces', async () => {
      const renewed = aCredential('a', { nextHash: 'next', lastUsedAtMs: 7 });
      const token = aCredential('b', { kind: 'join', replaces: true });
      await commit({ credentials: [renewed, token] });
      const later = { ...renewed, secretHash: 'next', nextHash: null, createdAtMs: 9, expiresAtMs: 10 };
      const store = await reopened();
      expect((await store.load()).credentials).toEqual([renewed, token]);
      await store.commit({ ...emptyBatch, credentials: [later] });
      expect((await store.load()).credentials).toEqual([later, token]);
    });

    it('budgets, what was used of them, and the tokens that have them', async () => {
      const limits = { gpuHours: 10, gpus: 4, jobs: null, jobsTotal: null, priority: 50 };
      const budget = { id: 'user:ann:1', limits, gpuSeconds: 0, jobsTotal: 1 };
      const token = aCredential('user:ann:1', {
        kind: 'user',
        subject: 'ann',
        scope: { projects: null, verbs: null, budget: budget.id },
      });
      await commit({ credentials: [token], budgets: [budget, { ...budget, id: 'user:ann:2' }] });
      const used = { ...budget, gpuSeconds: 3_600.5, jobsTotal: 7 };
      await commit({ budgets: [used], removedBudgets: ['user:ann:2', 'none'] });
      const snapshot = await (await reopened()).load();
      expect(snapshot).toMatchObject({ credentials: [token], budgets: [used] });
    });

    it('users and projects, and what tokens of users are limited to', async () => {
      const ann: User = { name: 'ann', role: 'user', projects: ['vision'], createdAtMs: someMs };
      const ben: User = { ...ann, name: 'ben', role: 'viewer' };
      const token = aCredential('user:ann:1', {
        kind: 'user',
        subject: 'ann',
        label: 'nightly',
        scope: { projects: ['vision'], verbs: ['read'], budget: null },
      });
      const vision = { name: 'vision', isPrivate: true };
      await commit({ users: [ann, ben], credentials: [token], projects: [vision] });
      const changed: User = { ...ann, role: 'operator' };
      await commit({ users: [changed], removedUsers: ['ben', 'nobody'] });

      const snapshot = await (await reopened()).load();

      expect(snapshot).toMatchObject({ users: [changed], credentials: [token], projects: [vision] });
    });
  });
}
