import { describe, expect, it } from 'vitest';
import { parseCgroupHomes } from './cgroupMounts.ts';

/** Debian 12 and its like: version 2 alone, in a service of its own. */
const unified =
  '29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate';

const none = { cgroup2: null, freezer: null, cpu: null, memory: null };

const hybrid = `
30 29 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:5 - cgroup2 cgroup2 rw,nsdelegate
34 29 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
36 29 0:32 / /sys/fs/cgroup/freezer rw,nosuid shared:11 - cgroup cgroup rw,freezer`;

describe('parseCgroupHomes', () => {
  it('finds the own group of version 2', () => {
    expect(parseCgroupHomes(unified, '0::/system.slice/muster-guard.service\n')).toEqual({
      cgroup2: '/sys/fs/cgroup/system.slice/muster-guard.service',
      freezer: null,
      cpu: null,
      memory: null,
    });
  });

  it('finds both of a hybrid machine, each in its own place', () => {
    expect(parseCgroupHomes(hybrid, '6:freezer:/ice\n5:cpu,cpuacct:/fast\n0::/init.scope\n')).toEqual({
      cgroup2: '/sys/fs/cgroup/unified/init.scope',
      freezer: '/sys/fs/cgroup/freezer/ice',
      cpu: '/sys/fs/cgroup/cpu,cpuacct/fast',
      memory: null,
    });
  });

  it('takes off what the mount of a container does not show', () => {
    const mount = '36 29 0:32 /docker/ab /sys/fs/cgroup/freezer ro shared:11 - cgroup cgroup rw,freezer';
    expect(parseCgroupHomes(mount, '6:freezer:/docker/ab/inner\n').freezer).toBe(
      '/sys/fs/cgroup/freezer/inner',
    );
    expect(parseCgroupHomes(mount, '6:freezer:/docker/ab\n').freezer).toBe('/sys/fs/cgroup/freezer');
  });

  it('knows nothing of a group outside the mount or the namespace', () => {
    const mount = '36 29 0:32 /docker/ab /sys/fs/cgroup/freezer ro shared:11 - cgroup cgroup rw,freezer';
    expect(parseCgroupHomes(mount, '6:freezer:/docker/cd\n').freezer).toBeNull();
    expect(parseCgroupHomes(unified, '0::/../elsewhere\n').cgroup2).toBeNull();
  });

  it('reads mount points with spaces', () => {
    const mount = '29 23 0:26 / /my\\040cgroups rw - cgroup2 cgroup2 rw';
    expect(parseCgroupHomes(mount, '0::/a\n').cgroup2).toBe('/my cgroups/a');
  });

  it('finds nothing where nothing is mounted', () => {
    expect(parseCgroupHomes('', '0::/\n')).toEqual(none);
    expect(parseCgroupHomes(hybrid, '')).toEqual(none);
  });
});
