import { expect, test } from 'vitest';
import { examineLimits, type LimitFacts } from './limits.ts';

const version2 = '29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate';
const version1 = ['cpu', 'memory']
  .map((name) => `34 29 0:30 / /sys/fs/cgroup/${name} rw,nosuid shared:9 - cgroup cgroup rw,${name}`)
  .join('\n');
const unit = '/sys/fs/cgroup/system.slice/muster-tasks.service/cgroup.controllers';

function examine(facts: Partial<LimitFacts>, files: Readonly<Record<string, string>> = {}) {
  return examineLimits({
    isRoot: true,
    hasSystemd: true,
    mountinfo: version2,
    cgroups: '2:memory:/a\n1:cpu:/a\n0::/user.slice\n',
    isWritable: () => true,
    read: (path) => files[path] ?? null,
    ...facts,
  });
}

test('with version 2 limits hold through the unit of tasks, and without it they do not', () => {
  expect(examine({}, { [unit]: 'cpuset cpu io memory pids\n' })).toMatchObject({
    state: 'ok',
    message: 'enforced, by control groups of version 2, in muster-tasks.service',
  });
  expect(examine({})).toMatchObject({
    state: 'warning',
    message: expect.stringContaining('not enforced for cpu and memory'),
    remedy: expect.stringContaining('muster install agent'),
  });
  expect(examine({}, { [unit]: 'cpu pids\n' }).message).toContain('not enforced for memory:');
});

test('with version 1 they hold where groups can be made', () => {
  expect(examine({ mountinfo: version1 })).toMatchObject({
    state: 'ok',
    message: expect.stringContaining('version 1'),
  });
  const readOnly = { mountinfo: version1, isWritable: () => false, hasSystemd: false };
  expect(examine(readOnly)).toMatchObject({ state: 'warning' });
});

test('an agent that is not root cannot enforce them', () => {
  expect(examine({ isRoot: false })).toMatchObject({ state: 'absent', remedy: null });
});
