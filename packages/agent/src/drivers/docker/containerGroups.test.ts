import { describe, expect, it } from 'vitest';
import { candidateGroups, groupsOfProcess } from './containerGroups.ts';

const ID = 'c0ffee'.repeat(10);

const UNIFIED = '29 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate';
const HYBRID = `
30 29 0:27 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw
36 29 0:32 / /sys/fs/cgroup/freezer rw shared:11 - cgroup cgroup rw,freezer`;

describe('candidateGroups', () => {
  it('knows the names of both ways that Docker makes groups', () => {
    const groups = candidateGroups(UNIFIED, ID);
    expect(groups).toContain(`/sys/fs/cgroup/docker/${ID}`);
    expect(groups).toContain(`/sys/fs/cgroup/system.slice/docker-${ID}.scope`);
  });

  it('looks into the version 1 freezer where there is one', () => {
    expect(candidateGroups(HYBRID, ID)).toContain(`/sys/fs/cgroup/freezer/docker/${ID}`);
    expect(candidateGroups(HYBRID, ID).filter((group) => group.includes('unified'))).toEqual([]);
  });

  it('has none where nothing can freeze', () => {
    expect(candidateGroups('22 1 8:1 / / rw - ext4 /dev/sda1 rw', ID)).toEqual([]);
  });
});

describe('groupsOfProcess', () => {
  it('finds the group that the kernel tells, wherever the engine was told to make it', () => {
    expect(groupsOfProcess(UNIFIED, `0::/system.slice/docker-${ID}.scope\n`, ID)).toEqual([
      `/sys/fs/cgroup/system.slice/docker-${ID}.scope`,
    ]);
    expect(groupsOfProcess(UNIFIED, `0::/jobs.slice/deep/${ID}\n`, ID)).toEqual([
      `/sys/fs/cgroup/jobs.slice/deep/${ID}`,
    ]);
    expect(groupsOfProcess(HYBRID, `0::/\n6:freezer:/docker/${ID}\n`, ID)).toEqual([
      `/sys/fs/cgroup/freezer/docker/${ID}`,
    ]);
  });

  it('takes the whole container, not a group that it made for a part of itself', () => {
    expect(groupsOfProcess(UNIFIED, `0::/docker/${ID}/init\n`, ID)).toEqual([`/sys/fs/cgroup/docker/${ID}`]);
  });

  it('never takes a group that is not named after the container', () => {
    expect(groupsOfProcess(UNIFIED, '0::/\n', ID)).toEqual([]);
    expect(groupsOfProcess(UNIFIED, '0::/system.slice/muster-agent.service\n', ID)).toEqual([]);
    expect(groupsOfProcess(UNIFIED, `0::/../${ID}\n`, ID)).toEqual([]);
  });
});
