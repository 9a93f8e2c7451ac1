/** Limits through control groups of version 2, in a tree of files that stands for them: machines that run this have either version. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { ResourceLimits } from './resources.ts';

const task = { key: 'job_0123456789ab.1.0', directory: '/' };
const limits = { cpus: 1.5, memoryMb: 512 };

/** @param files those of the controllers that a group has there */
function aGroup(files: readonly string[]) {
  const { path, remove } = tempDir('resources');
  onTestFinished(remove);
  const group = join(path, task.key);
  mkdirSync(group);
  for (const name of files) writeFileSync(join(group, name), '');
  const warnings: unknown[] = [];
  const log = { ...silentLogger, warn: (fields: object) => warnings.push(fields) };
  // No hierarchy of version 1 has a controller.
  const resources = new ResourceLimits({ cpu: null, memory: null }, 'test', log);
  return { group, resources, warnings, valueOf: (name: string) => readFileSync(join(group, name), 'utf8') };
}

test('the group that a task is frozen by has its limits too, and no other group is made', () => {
  const { group, resources, valueOf, warnings } = aGroup([
    'cpu.max',
    'memory.max',
    'memory.swap.max',
    'memory.oom.group',
  ]);
  expect(resources.groupsOf(task, limits)).toEqual([]);
  expect(resources.set(task, limits, group)).toBe(true);
  expect(['cpu.max', 'memory.max', 'memory.swap.max', 'memory.oom.group'].map(valueOf)).toEqual([
    '150000 100000',
    `${512 * 1024 * 1024}`,
    '0',
    '1',
  ]);
  expect(warnings).toEqual([]);
});

test('only what the job asks for is limited, and the kernel takes no share below a millisecond', () => {
  const { group, resources, valueOf } = aGroup(['cpu.max', 'memory.max']);
  expect(resources.set(task, { cpus: 0.001, memoryMb: null }, group)).toBe(true);
  expect([valueOf('cpu.max'), valueOf('memory.max')]).toEqual(['1000 100000', '']);
});

test('a group without a controller starts its task anyway, which is reported once for each', () => {
  const { group, resources, valueOf, warnings } = aGroup(['memory.max']);
  for (let count = 0; count < 2; count += 1) expect(resources.set(task, limits, group)).toBe(true);
  expect(valueOf('memory.max')).toBe(`${512 * 1024 * 1024}`);
  expect(warnings).toEqual([{ task: task.key, controller: 'cpu' }]);
});
