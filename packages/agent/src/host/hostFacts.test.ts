import { cpus, hostname, release } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FileSystemCalls, FileSystemQuestions } from './fileSystemSpace.ts';
import { readHostFacts } from './hostFacts.ts';
import { HostTree } from './hostFixture.ts';

let tree: HostTree;
beforeEach(() => {
  tree = new HostTree();
});
afterEach(() => tree.remove());

const statfs: FileSystemCalls['statfs'] = () =>
  Promise.resolve({ bsize: 4096, frsize: 4096, blocks: 100, bavail: 10, files: 0, ffree: 0 });
const asking = (ask: FileSystemCalls['statfs']) =>
  new FileSystemQuestions({ statfs: ask, realPath: (path) => Promise.resolve(path) });
const questions = asking(statfs);

/** Two sockets of two cores of two threads each; the second threads have the high numbers. */
function buildServer(): void {
  tree.file('sys/devices/system/cpu/online', '0-7\n').file('sys/devices/system/node/online', '0-1\n');
  for (let cpu = 0; cpu < 8; cpu += 1) {
    const core = cpu % 4;
    const socket = core < 2 ? '0-1,4-5' : '2-3,6-7';
    tree.file(`sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`, `${core},${core + 4}\n`);
    tree.file(`sys/devices/system/cpu/cpu${cpu}/topology/core_siblings_list`, `${socket}\n`);
  }
  tree.file('proc/cpuinfo', 'processor\t: 0\nmodel name\t: Example(R)  CPU 8480C\n\nprocessor\t: 1\n');
  tree.file(
    'etc/os-release',
    'PRETTY_NAME="Example Linux 7 (seven)"\nNAME="Example \\"E\\" Linux"\nVERSION_ID="7"\n',
  );
  tree.file('proc/self/mountinfo', '1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /nfs rw - nfs4 s:/x rw\n');
}

test('a server', async () => {
  buildServer();
  expect(await readHostFacts({ root: tree.root, questions })).toEqual({
    hostname: hostname(),
    os: 'Example "E" Linux 7',
    kernel: release(),
    cpuModel: 'Example(R) CPU 8480C',
    sockets: 2,
    cores: 4,
    threads: 8,
    numaNodes: 2,
    fileSystems: [
      { mountPoint: '/', device: '/dev/sda1', type: 'ext4', sizeBytes: 409_600 },
      { mountPoint: '/nfs', device: 's:/x', type: 'nfs4', sizeBytes: 409_600 },
    ],
  });
});

test('a file system that does not answer is left out, and holds up nothing else', async () => {
  buildServer();
  const someHang: FileSystemCalls['statfs'] = (path) =>
    path === '/nfs' ? new Promise(() => {}) : statfs(path);
  const facts = await readHostFacts({ root: tree.root, questions: asking(someHang), deadlineMs: 20 });
  expect(facts.fileSystems.map(({ mountPoint }) => mountPoint)).toEqual(['/']);
});

test('CPUs that are offline are not counted', async () => {
  buildServer();
  tree.file('sys/devices/system/cpu/online', '0-1,4\n');
  expect(await readHostFacts({ root: tree.root, questions })).toMatchObject({
    sockets: 1,
    cores: 2,
    threads: 3,
  });
});

test('an ARM CPU without a name, a system without a version', async () => {
  tree.file('proc/cpuinfo', 'processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n');
  tree.file('usr/lib/os-release', "NAME='Rolling Linux'\n");
  const facts = await readHostFacts({ root: tree.root, questions });
  expect(facts).toMatchObject({ os: 'Rolling Linux', numaNodes: 1 });
  expect(facts.cpuModel).toMatch(/ 0x41 0xd4f$/);
});

test('a container that shows nothing', async () => {
  const facts = await readHostFacts({ root: tree.root });
  expect(facts).toMatchObject({ os: 'Linux', sockets: 0, cores: 0, fileSystems: [] });
  expect(facts.threads).toBeGreaterThan(0);
});

test('lists that are no lists', async () => {
  buildServer();
  for (const list of ['0-99999999', '7-', 'a,b', '', '0-65535,0-65535']) {
    tree.file('sys/devices/system/cpu/online', list);
    expect(await readHostFacts({ root: tree.root, questions })).toMatchObject({ sockets: 0, cores: 0 });
  }
});

test('on this machine', async () => {
  const facts = await readHostFacts();
  expect(facts.threads).toBe(cpus().length);
  expect(facts.cores).toBeLessThanOrEqual(facts.threads);
  expect(facts.sockets).toBeLessThanOrEqual(facts.cores);
  expect(facts.fileSystems.map(({ mountPoint }) => mountPoint)).toContain('/');
});
