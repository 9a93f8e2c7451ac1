import { describe, expect, it } from 'vitest';
import { candidateGroups, groupsOfProcess } from './containerFences.ts';

const containerId = 'c0ffee'.repeat(10);

const unified = '29 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate';
const hybrid = `
30 29 0:27 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw
36 29 0:32 / /sys/fs/cgroup/freezer rw shared:11 - cgroup cgroup rw,freezer`;

describe('candidateGroups', () => {
  it('knows the names of both ways that Docker makes groups', () => {
    const groups = candidateGroups(unified, containerId);
    expect(groups).toContain(`/sys/fs/cgroup/docker/${containerId}`);
    expect(groups).toContain(`/sys/fs/cgroup/system.slice/docker-${containerId}.scope`);
  });

  it('looks into the version 1 freezer where there is one', () => {
    expect(candidateGroups(hybrid, containerId)).toContain(`/sys/fs/cgroup/freezer/docker/${containerId}`);
    expect(candidateGroups(hybrid, containerId).filter((group) => group.includes('unified'))).toEqual([]);
  });

  it('has none where nothing can freeze', () => {
    expect(candidateGroups('22 1 8:1 / / rw - ext4 /dev/sda1 rw', containerId)).toEqual([]);
  });
});

describe('groupsOfProcess', () => {
  it('finds the group that the kernel tells, wherever the engine was configured to make it', () => {
    expect(groupsOfProcess(unified, `0::/system.slice/docker-${containerId}.scope\n`, containerId)).toEqual([
      `/sys/fs/cgroup/system.slice/docker-${containerId}.scope`,
    ]);
    expect(groupsOfProcess(unified, `0::/jobs.slice/deep/${containerId}\n`, containerId)).toEqual([
      `/sys/fs/cgroup/jobs.slice/deep/${containerId}`,
    ]);
    expect(groupsOfProcess(hybrid, `0::/\n6:freezer:/docker/${containerId}\n`, containerId)).toEqual([
      `/sys/fs/cgroup/freezer/docker/${containerId}`,
    ]);
  });

  it('takes the whole container, not a group that it made for a part of itself', () => {
    expect(groupsOfProcess(unified, `0::/docker/${containerId}/init\n`, containerId)).toEqual([
      `/sys/fs/cgroup/docker/${containerId}`,
    ]);
  });

  it('never takes a group that is not named after the container', () => {
    expect(groupsOfProcess(unified, '0::/\n', containerId)).toEqual([]);
    expect(groupsOfProcess(unified, '0::/system.slice/muster-agent.service\n', containerId)).toEqual([]);
    expect(groupsOfProcess(unified, `0::/../${containerId}\n`, containerId)).toEqual([]);
  });
});
