import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostTree } from './hostFixture.ts';
import { dataFileSystems, mountOf, readMounts } from './mounts.ts';

let tree: HostTree;
beforeEach(() => {
  tree = new HostTree();
});
afterEach(() => tree.remove());

function mounted(...lines: readonly string[]) {
  tree.file('proc/self/mountinfo', `${lines.join('\n')}\n`);
  return readMounts(tree.root);
}

test('a line in all its forms', () => {
  const writable = { readOnly: false, mountedReadOnly: false };
  expect(
    mounted(
      '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard',
      '28 27 254:1 / /with\\040space rw master:1 shared:2 - xfs /dev/vdb ro',
      '29 27 0:40 / /home ro,noatime - nfs4 storage:/export/home rw,vers=4.2',
      '30 27 0:41 / /empty rw - tmpfs  rw',
      'not a mount',
      '31 27 0:42 / /cut rw -',
      '',
    ),
  ).toEqual([
    { mountPoint: '/', device: '/dev/vda', type: 'ext4', ...writable, remote: false },
    {
      mountPoint: '/with space',
      device: '/dev/vdb',
      type: 'xfs',
      readOnly: true,
      mountedReadOnly: false,
      remote: false,
    },
    {
      mountPoint: '/home',
      device: 'storage:/export/home',
      type: 'nfs4',
      readOnly: false,
      mountedReadOnly: true,
      remote: true,
    },
    { mountPoint: '/empty', device: '', type: 'tmpfs', ...writable, remote: false },
  ]);
});

test('data is on disks and servers, each named once, servers last', () => {
  const mounts = mounted(
    '1 0 0:1 / /proc rw - proc proc rw',
    '2 0 0:2 / /dev/shm rw - tmpfs tmpfs rw',
    '3 0 0:3 / /afs rw - lustre 10.0.0.1@o2ib:/scratch rw',
    '4 0 8:2 /docker /var/lib/docker rw - ext4 /dev/sda2 rw',
    '5 0 8:2 / / rw - ext4 /dev/sda2 rw',
    '6 0 8:1 / /boot/efi rw - vfat /dev/sda1 rw',
    '7 0 7:0 / /snap/core/1 ro - squashfs /dev/loop0 ro',
    '8 0 0:9 / /var/lib/docker/overlay2/ab/merged rw - overlay overlay rw',
    '9 0 0:8 / /tank/data rw - zfs tank/data rw',
    '10 0 0:7 / /bucket rw - fuse.s3fs s3fs rw',
    '11 0 0:6 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw',
  );
  expect(dataFileSystems(mounts).map(({ mountPoint }) => mountPoint)).toEqual([
    '/',
    '/boot/efi',
    '/tank/data',
    '/afs',
    '/bucket',
  ]);
});

test('in a container: its root, and not the files that the engine puts into it', () => {
  const mounts = mounted(
    '1 0 0:9 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u',
    '2 1 8:2 /hostname /etc/hostname rw - ext4 /dev/sda2 rw',
    '3 1 8:3 /data /data rw - xfs /dev/sda3 rw',
  );
  expect(dataFileSystems(mounts).map(({ mountPoint }) => mountPoint)).toEqual(['/', '/data']);
});

test('the mount of a path is the longest above it, and the newest there', () => {
  const mounts = mounted(
    '1 0 8:1 / / rw - ext4 /dev/sda1 rw',
    '2 1 8:2 / /data rw - ext4 /dev/sda2 rw',
    '3 1 8:3 / /data rw - xfs /dev/sda3 rw',
  );
  const deviceOf = (path: string) => mountOf(path, mounts)?.device;
  expect(deviceOf('/data')).toBe('/dev/sda3');
  expect(deviceOf('/data/jobs/7')).toBe('/dev/sda3');
  expect(deviceOf('/database')).toBe('/dev/sda1');
  expect(mountOf('/data', [])).toBeNull();
});

test('without mountinfo nothing is mounted', () => {
  expect(readMounts(tree.root)).toEqual([]);
});

test('every line of this machine is understood', () => {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n');
  const mounts = readMounts();
  expect(mounts).toHaveLength(lines.length);
  expect(mountOf('/proc/self', mounts)).toMatchObject({ mountPoint: '/proc', type: 'proc' });
});
