import { expect, test } from 'vitest';
import { aCondition, aJob, aNode, anAttempt, anInventory, aTask, someGpus } from '../modelFixture.ts';
import { nodeView } from '../views.ts';
import { countBy, countGpus } from './counts.ts';

test('every GPU is in one state, and free is only what could get work', () => {
  const gpus = someGpus('n', 4);
  const drainedGpu = aCondition('xid_48', { action: 'drain_gpu', gpuUuid: 'GPU-n-1' });
  const node = aNode('n', { inventory: anInventory({ gpus }), conditions: [drainedGpu] });
  const held = [
    { job: aJob(1), attempt: anAttempt(1), task: aTask(0, { gpuUuids: ['GPU-n-0', 'GPU-n-1'] }) },
  ];
  const drainedNode = aNode('d', { conditions: [aCondition('xid_79', { action: 'drain_node' })] });
  const counts = countGpus([
    nodeView(node, held, true, 0),
    nodeView(drainedNode, [], false, null),
    nodeView(aNode('s'), [], false, null),
  ]);
  expect(Object.fromEntries(counts)).toEqual({ free: 2, allocated: 2, drained: 2, silent: 2 });
});

test('things are counted by key', () => {
  expect(Object.fromEntries(countBy(['a', 'b', 'a'], (word) => word))).toEqual({ a: 2, b: 1 });
});
