import type { EventKind } from '@muster/common/eventKinds';
import { expect, test } from 'vitest';
import type { StoredEvent } from '../model.ts';
import { aNode, nodeNameOf, someMs } from '../modelFixture.ts';
import { ClusterState } from '../state/state.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { PathHistory } from './pathHistory.ts';

const [one, two] = [nodeNameOf('node-1'), nodeNameOf('node-2')];

let seq = 0;
function anEvent(
  kind: EventKind,
  subject: string,
  data: Readonly<Record<string, unknown>>,
  timeMs = someMs,
): StoredEvent {
  seq += 1;
  return { seq, id: `e${seq}`, subjectSeq: seq, kind, subject, data, timeMs, by: 'test', peer: '' };
}
const online = (node: string, bootId: string) => anEvent('node.online', node, { bootId });
const silent = (node: string) => anEvent('node.silent', node, {});
const measured = (bytesPerS: number, timeMs = someMs) =>
  anEvent(
    'preflight.measured',
    'job_1',
    { backend: 'gloo', pairs: [{ from: one, to: two, bytesPerS }] },
    timeMs,
  );

async function aHistory(events: readonly StoredEvent[] = []) {
  const memory = new Memory('test');
  for (const name of [one, two]) memory.nodes.set(name, aNode(name, { bootId: 'boot-1' }));
  for (const event of events) memory.events.set(event.seq, event);
  const store = new MemoryStore(memory);
  return PathHistory.open(store, new ClusterState(await store.load()));
}

test('the newest measurement of a path is shown at both of its ends', async () => {
  const history = await aHistory([measured(1), measured(2, someMs + 1)]);
  const path = { bytesPerS: 2, measuredAtMs: someMs + 1, backend: 'gloo' };
  expect(history.bandwidthsOf(one)).toEqual([{ ...path, peer: two }]);
  expect(history.bandwidthsOf(two)).toEqual([{ ...path, peer: one }]);
  history.committed([measured(3)]);
  expect(history.bandwidthsOf(one)).toMatchObject([{ bytesPerS: 3 }]);
  expect(history.bandwidthsOf(nodeNameOf('node-3'))).toEqual([]);
});

test('a node that was removed has no paths, at neither of their ends', async () => {
  const history = await aHistory([measured(1)]);
  history.committed([anEvent('node.removed', one, {})]);
  expect(history.bandwidthsOf(one)).toEqual([]);
  expect(history.bandwidthsOf(two)).toEqual([]);
});

test('of two ends that measured one path, each is shown what it measured itself', async () => {
  const history = await aHistory();
  const pairs = [
    { from: one, to: two, bytesPerS: 10 },
    { from: two, to: one, bytesPerS: 20 },
  ];
  history.committed([anEvent('preflight.measured', 'job_1', { backend: 'nccl', pairs })]);
  expect(history.bandwidthsOf(one)).toMatchObject([{ bytesPerS: 10, backend: 'nccl' }]);
  expect(history.bandwidthsOf(two)).toMatchObject([{ bytesPerS: 20 }]);
});

test.each([
  ['was silent', [silent(one), online(one, 'boot-1')], true],
  ['was rebooted', [online(one, 'boot-2')], true],
  ['only dials in again', [online(one, 'boot-1')], false],
  ['is silent still', [silent(one)], false],
  ['was measured since', [silent(one), online(one, 'boot-1'), measured(1)], false],
  ['was away again since it was measured', [measured(1), silent(one), online(one, 'boot-1')], true],
])('a node that %s: needs a preflight, or not', async (_, events, expected) => {
  const history = await aHistory();
  history.committed(events);
  expect(history.needsPreflight(one)).toBe(expected);
  expect(history.needsPreflight(two)).toBe(false);
  if (expected && events.every(({ kind }) => kind !== 'node.online' || events.length > 1))
    expect((await aHistory(events)).needsPreflight(one), 'from the store, too').toBe(true);
});

test('what is in an event that is not what it should be harms nothing', async () => {
  const history = await aHistory();
  history.committed([anEvent('preflight.measured', 'job_1', {}), anEvent('node.online', one, {})]);
  expect(history.bandwidthsOf(one)).toEqual([]);
});
