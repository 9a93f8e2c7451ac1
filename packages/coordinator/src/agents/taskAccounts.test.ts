import { type JobId, taskKey } from '@muster/common/ids';
import { observedMax } from '@muster/common/wire/agentLimits';
import { expect, test } from 'vitest';
import { aNode } from '../modelFixture.ts';
import { TaskAccounts } from './taskAccounts.ts';

const node = aNode('node-1').name;
const named = { task: { jobId: 'job_00000000000a' as JobId, attempt: 1, nodeRank: 0 } };
const task = taskKey(named.task);

test('a task is dropped when an account later than the look no longer names it', () => {
  const held = new TaskAccounts();
  expect(held.holdOf(node, task, held.now)).toBe('unknown');
  held.connected(node, [], true);
  // The agent gave that account before it knew the task.
  const since = held.now;
  expect(held.holdOf(node, task, since)).toBe('unknown');
  held.reported(node, [named]);
  expect(held.holdOf(node, task, since)).toBe('held');
  held.reported(node, []);
  expect(held.holdOf(node, task, since)).toBe('dropped');
});

test('an agent of an earlier version drops tasks without a mark, until a newer one connects', () => {
  const held = new TaskAccounts();
  held.connected(node, [], false);
  expect(held.holdOf(node, task, 0)).toBe('dropped_unmarked');
  held.reported(node, []);
  expect(held.holdOf(node, task, 0)).toBe('dropped_unmarked');
  held.connected(node, [], true);
  expect(held.holdOf(node, task, 0)).toBe('dropped');
});

test('an account that may have left tasks out, and one of a removed node, says nothing', () => {
  const held = new TaskAccounts();
  const others = Array.from({ length: observedMax }, (_, index) => ({
    task: { ...named.task, attempt: index + 2 },
  }));
  held.connected(node, others, true);
  expect(held.holdOf(node, task, 0)).toBe('unknown');
  held.reported(node, []);
  held.committed({ removedNodes: [node] });
  expect(held.holdOf(node, task, 0)).toBe('unknown');
});
