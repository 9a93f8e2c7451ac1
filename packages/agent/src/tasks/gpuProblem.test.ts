import type { Condition } from '@muster/common/conditions';
import { bareGpu, emptyInventory } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { gpuProblem, occupiedGpu } from './gpuProblem.ts';

const inventory = { ...emptyInventory, gpus: [bareGpu('GPU-1'), bareGpu('GPU-2')] };

function aCondition(changes: Partial<Condition>): Condition {
  return {
    kind: 'xid_79',
    gpuUuid: 'GPU-1',
    severity: 'critical',
    action: 'drain_gpu',
    message: 'GPU 0 fell off the bus',
    evidence: 'Xid 79',
    sinceMs: 5,
    lastSeenAtMs: 6,
    count: 1,
    clears: 'by_reboot',
    task: null,
    ...changes,
  };
}

const problemOf = (gpuUuids: readonly string[], ...conditions: readonly Condition[]) =>
  gpuProblem(gpuUuids, { inventory, conditions });

test('GPUs that are there and well have no problem', () => {
  expect(problemOf(['GPU-1', 'GPU-2'])).toBeNull();
  expect(problemOf([])).toBeNull();
  expect(problemOf(['GPU-1'], aCondition({ action: 'note' }))).toBeNull();
});

test('nothing is known before the node was looked at', () => {
  expect(gpuProblem(['GPU-9'], null)).toBeNull();
});

test('a drained GPU keeps a task away, with its reason; its neighbour does not', () => {
  const cause = { kind: 'gpu_fault', message: 'GPU GPU-1 takes no new work: GPU 0 fell off the bus' };
  expect(problemOf(['GPU-2', 'GPU-1'], aCondition({}))).toMatchObject(cause);
  expect(problemOf(['GPU-2'], aCondition({}))).toBeNull();
});

test('a drained node keeps every task away, with the cause that the condition names', () => {
  const full = { kind: 'disk_full', gpuUuid: null, action: 'drain_node', message: '/ is full' } as const;
  const cause = { kind: 'disk_full', message: 'the node takes no new work: / is full' };
  expect(problemOf([], aCondition(full))).toMatchObject(cause);
});

test('a GPU that is gone is named', () => {
  expect(problemOf(['GPU-3'])).toMatchObject({
    kind: 'gpu_fault',
    message: 'GPU GPU-3 is no longer present',
  });
});

const foreign = { gpuUuid: 'GPU-1', pid: 123, name: 'python3' };
const never = new AbortController().signal;

test('a process that is leaving its GPU is waited for', async () => {
  const seen = [[foreign], [foreign], []];
  expect(await occupiedGpu(() => seen.shift() ?? [], never, { looks: 3, pauseMs: 1 })).toBeNull();
  expect(seen).toEqual([]);
});

test('one that stays keeps a task away, with its number and its name', async () => {
  expect(await occupiedGpu(() => [foreign], never, { looks: 3, pauseMs: 1 })).toMatchObject({
    kind: 'gpu_fault',
    message: 'GPU GPU-1 is in use by pid 123 (python3), which is no task of this node: end that process',
  });
});

test('nobody waits for a GPU that is no longer needed', async () => {
  const wanted = new AbortController();
  const waiting = occupiedGpu(() => [foreign], wanted.signal, { looks: 2, pauseMs: 600_000 });
  const reason = new Error('no longer needed');
  wanted.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});
