/** Which attempts run on a lease, where the coordinator's own machine needs none. */
import { silentLogger } from '@muster/common/log';
import { expect, test } from 'vitest';
import { submit } from './commands/jobs.ts';
import { countingBytes, TestClock } from './coordinatorFixture.ts';
import { Loop } from './loop.ts';
import { currentAttempt } from './model.ts';
import { aCaller, aNode, aSpec } from './modelFixture.ts';
import { WaitTimes } from './planning/waitTimes.ts';
import { ClusterState } from './state/state.ts';
import { Memory, MemoryStore } from './store/memory/memoryStore.ts';
import { Contained } from './work/contained.ts';

test.each([
  ['on this machine alone', 'boot-of-node-1', 1, {}, null],
  ['on this machine, with a lease of its own', 'boot-of-node-1', 1, { lease: '20s' }, 20_000],
  ['on another machine too', 'boot-of-node-1', 2, {}, 60_000],
  ['on another machine', 'boot-of-none', 1, {}, 60_000],
  ['anywhere, where every machine needs leases', null, 1, {}, 60_000],
])('a job %s', async (_, leaseFreeBootId, nodes, file, leaseMs) => {
  const memory = new Memory('test');
  for (const name of ['node-1', 'node-2'].slice(0, nodes)) memory.nodes.set(name, aNode(name));
  const store = new MemoryStore(memory);
  const state = new ClusterState(await store.load());
  const loop = new Loop({
    state,
    store,
    clock: new TestClock(),
    log: silentLogger,
    waitTimes: new WaitTimes(),
    onlineNodes: () => new Set(state.nodes.keys()),
    paused: () => null,
    leaseMs: 60_000,
    leaseFreeBootId,
    needsPreflight: () => false,
    orphanGpus: () => new Set(),
    onViolation: () => {},
    contained: new Contained(silentLogger, () => 0),
    followers: {},
    onFatal: () => {},
  });
  const command = {
    spec: aSpec({ ...file, resources: { nodes } }),
    requestId: 'a',
    digest: 'd',
    arraySize: 0,
  };
  const { jobIds } = await loop.run(aCaller, (draft, nowMs) =>
    submit(draft, { ...command, requeuedFrom: null, place: null }, countingBytes(), nowMs),
  );
  const [jobId] = jobIds;
  expect(currentAttempt(jobId && state.jobs.get(jobId))).toMatchObject({ leaseMs });
  await loop.stop();
});
