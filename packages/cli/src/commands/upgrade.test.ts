/** `upgrade` on a system image: real archives and locks, and no services. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { schemaVersion } from '@muster/coordinator/store/schema';
import { openSqliteStore } from '@muster/coordinator/store/sqlite/sqliteStore';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { unpackedRelease } from '../install/releaseFixture.ts';
import { runCli } from '../program.ts';
import { newCall, run } from '../testing/testContext.ts';

async function muster(programDir: string, ...argv: readonly string[]) {
  const { context, stdout, stderr } = newCall(null, { environment: { programDir, uid: 0 } });
  const exitCode = await runCli(argv, context);
  return { exitCode, text: stdout(), problem: stderr() };
}

/** @returns the archive of a release */
function archiveOf(version: string, storeSchema = 17, arch?: string): string {
  const { path } = tempDir('archive');
  const folder = `muster-${version}-linux-${process.arch}`;
  unpackedRelease(join(path, folder), version, 'c0ffee00', storeSchema, arch);
  const archive = join(path, `${folder}.tar.gz`);
  execFileSync('tar', ['-czf', archive, '-C', path, folder]);
  return archive;
}

/** An image with release 1.2.3 and a coordinator. */
async function anImage(): Promise<{ root: string; upgrade: (file: string) => ReturnType<typeof muster> }> {
  const { path: root } = tempDir('image');
  mkdirSync(join(root, 'etc'));
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\n');
  const programDir = unpackedRelease(join(tempDir('unpacked').path, 'muster-1.2.3'));
  const { exitCode, problem } = await muster(programDir, 'install', 'coordinator', '--root', root);
  expect(exitCode, problem).toBe(exitCodes.ok);
  return { root, upgrade: (file) => muster(programDir, 'upgrade', file, '--root', root) };
}

const current = (root: string) => readlinkSync(join(root, 'opt/muster/current'));

test('a release takes the place of another, and the one before the last is removed', async () => {
  const { root, upgrade } = await anImage();
  const done = await upgrade(archiveOf('1.3.0'));
  expect([done.exitCode, done.text], done.problem).toEqual([exitCodes.ok, 'upgraded from 1.2.3 to 1.3.0\n']);
  expect(current(root)).toBe('1.3.0');
  await upgrade(archiveOf('1.4.0'));
  expect(readdirSync(join(root, 'opt/muster')).sort()).toEqual(['1.3.0', '1.4.0', 'current']);

  expect((await upgrade(archiveOf('1.4.0'))).problem).toBe(
    'Nothing to change: 1.4.0 is the current release.\n',
  );
  // Back to the one before, which is there still and takes no more space.
  const disk = join(root, 'opt/muster');
  cpSync(disk, join(root, 'kept'), { recursive: true, verbatimSymlinks: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
  try {
    cpSync(join(root, 'kept'), disk, { recursive: true, verbatimSymlinks: true });
    const back = await upgrade(archiveOf('1.3.0'));
    expect(current(root), back.problem).toBe('1.3.0');
  } finally {
    execFileSync('umount', [disk]);
  }
});

test.each([
  ['a file that is missing', () => '/nowhere/muster.tar.gz', 'cannot read /nowhere/muster.tar.gz'],
  ['something else', () => join(import.meta.dirname, 'upgrade.ts'), 'is not the archive of a release'],
  ['an archive that was cut off', () => cutOff(archiveOf('1.3.0')), 'is damaged: it cannot be unpacked'],
  ['other bytes than its checksum', () => otherSum(archiveOf('1.3.0')), 'its checksum differs from that in'],
  ['a release with a changed file', () => changed(), 'is damaged: lib/muster/muster is not the file'],
  ['a release for other machines', () => archiveOf('1.3.0', 17, 'mips'), 'is for machines of the kind mips'],
  ['a release that cannot read the store', () => archiveOf('1.1.0', 16), 'cannot read the store of 1.2.3'],
  ['a release that is too far away', () => archiveOf('1.9.0'), 'from 1.2.3 to 1.9.0 is more than one minor'],
  ['a package', () => '/tmp/muster_1.3.0_amd64.deb', 'Muster on this machine is from an archive'],
])('%s is refused, and the machine keeps its release', async (_what, file, message) => {
  const { root, upgrade } = await anImage();
  const { exitCode, problem } = await upgrade(file());
  expect(problem).toContain(message);
  expect(exitCode).not.toBe(exitCodes.ok);
  expect(current(root)).toBe('1.2.3');
  expect(readdirSync(join(root, 'opt/muster')).filter((name) => name.startsWith('.'))).toEqual([]);
});

function cutOff(archive: string): string {
  truncateSync(archive, readFileSync(archive).length - 100);
  return archive;
}

function otherSum(archive: string): string {
  const name = archive.split('/').at(-1);
  writeFileSync(join(archive, '../SHA256SUMS'), `${'0'.repeat(64)}  ${name}\n`);
  return archive;
}

function changed(): string {
  const { path } = tempDir('archive');
  unpackedRelease(join(path, 'muster-1.3.0'), '1.3.0');
  writeFileSync(join(path, 'muster-1.3.0/lib/muster/muster'), '#!/bin/sh\nexit 1\n');
  execFileSync('tar', ['-czf', join(path, 'muster.tar.gz'), '-C', path, 'muster-1.3.0']);
  return join(path, 'muster.tar.gz');
}

test('a release that was refused does not stay, and one that was there does', async () => {
  const { root, upgrade } = await anImage();
  await upgrade(archiveOf('1.3.0', 18));
  expect((await upgrade(archiveOf('1.5.0', 18))).problem).toContain('more than one minor version');
  expect((await upgrade(archiveOf('1.2.3'))).problem).toContain('cannot read the store of 1.3.0');
  expect(readdirSync(join(root, 'opt/muster')).sort()).toEqual(['1.2.3', '1.3.0', 'current']);
});

test('an older release is taken once the store has the form that it knows, and while nobody works on it', async () => {
  const { root, upgrade } = await anImage();
  await upgrade(archiveOf('1.3.0', schemaVersion + 1));
  const older = archiveOf('1.2.4', schemaVersion);
  expect((await upgrade(older)).problem).toContain('with the program of 1.2.4, and call this again');
  const store = openSqliteStore(join(root, 'var/lib/muster'), () => 'c0ffee');
  expect((await upgrade(older)).problem).toContain('cannot read the store of 1.3.0');
  await store.close();
  expect((await upgrade(archiveOf('1.2.4', schemaVersion - 1))).problem).toContain(
    `(schema ${schemaVersion}; it knows up to ${schemaVersion - 1})`,
  );
  expect((await upgrade(older)).text).toBe('upgraded from 1.3.0 to 1.2.4\n');
  expect(current(root)).toBe('1.2.4');
});

test.each([
  [['--nodes', 'gpu-9'], 'no host is known for node gpu-9'],
  [['--nodes', 'all'], 'no host was recorded by `muster node add`'],
  [['--wave', '2'], '--wave is for --nodes'],
])('%j is refused', async (flags, message) => {
  const { problem, exitCode } = await muster('/x', 'upgrade', archiveOf('1.3.0'), ...flags);
  expect(problem).toContain(message);
  expect(exitCode).toBe(exitCodes.usage);
});

test('nodes wait for their coordinator', async () => {
  const ask = { GetCluster: () => ({ id: 'c', version: '1.2.3' }) };
  const { stderr, requests } = await run(['upgrade', archiveOf('1.3.0'), '--nodes', 'gpu-1=root@h'], ask);
  expect(stderr).toContain('the coordinator has version 1.2.3, and it is upgraded before its nodes');
  expect(requests.map(({ method }) => method)).toEqual(['GetCluster']);
});

test('a disk without space keeps its release', async () => {
  const { root, upgrade } = await anImage();
  const archive = archiveOf('1.3.0');
  // A disk of its own, with room for the old release and little more.
  const disk = join(root, 'opt/muster');
  cpSync(disk, join(root, 'kept'), { recursive: true, verbatimSymlinks: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
  try {
    cpSync(join(root, 'kept'), disk, { recursive: true, verbatimSymlinks: true });
    const { problem } = await upgrade(archive);
    expect(problem).toMatch(/opt\/muster has .* free, and muster-1\.3\.0-.* takes/);
    expect(current(root)).toBe('1.2.3');
    expect(existsSync(join(disk, '1.3.0'))).toBe(false);
  } finally {
    execFileSync('umount', [disk]);
  }
});

test('the second of two is told who was first and since when', async () => {
  const { root, upgrade } = await anImage();
  const archive = archiveOf('1.3.0');
  const runDir = join(root, 'run/muster-upgrade');
  const holder = { who: 'ada', sinceMs: 1_700_000_000_000, pid: 4711, file: 'muster-1.3.0.tar.gz' };
  const script = `
    import { upgradingAlone } from ${JSON.stringify(join(import.meta.dirname, '../upgrade/exclusive.ts'))};
    await upgradingAlone(${JSON.stringify(runDir)}, ${JSON.stringify(holder)}, async () => {
      console.log('held');
      await new Promise((resolve) => process.stdin.on('end', resolve).resume());
    });`;
  const first = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    await once(first.stdout, 'data');
    const second = await upgrade(archive);
    expect(second.problem).toContain(
      'this machine is being upgraded: ada runs `muster upgrade muster-1.3.0.tar.gz` since 2023-11-14T22:13:20.000Z (process 4711)',
    );
    expect(current(root)).toBe('1.2.3');
  } finally {
    first.kill('SIGKILL');
    await once(first, 'close');
  }
  // However the first one ended, it no longer counts.
  expect((await upgrade(archive)).exitCode).toBe(exitCodes.ok);
});

test('of two admins who log in from elsewhere the second is told where the first one is', async () => {
  const { root } = await anImage();
  const archive = archiveOf('1.3.0');
  // Comparing it takes a moment, in which the second one begins.
  const sum = execFileSync('sha256sum', [archive], { encoding: 'utf8' }).slice(0, 64);
  writeFileSync(join(archive, '../SHA256SUMS'), `${sum}  ${archive.split('/').at(-1)}\n`);
  const upgrade = async (variables: Readonly<Record<string, string>>) => {
    const { context, stderr } = newCall(null, { environment: { programDir: '/x', uid: 0, variables } });
    return { exitCode: await runCli(['upgrade', archive, '--root', root], context), problem: stderr() };
  };
  const [first, second] = await Promise.all([
    upgrade({ SUDO_USER: 'ada', SSH_CONNECTION: '10.0.0.7 50000 10.0.0.1 22' }),
    upgrade({}),
  ]);
  expect(first.exitCode, first.problem).toBe(exitCodes.ok);
  expect(second.problem).toContain('this machine is being upgraded: ada from 10.0.0.7 runs `muster upgrade');
  expect(second.problem).toContain('Nothing was changed. Once that has ended, the same command');
});

test("a machine with Debian's package and one with a checkout are told what upgrades them", async () => {
  const { path: root } = tempDir('image');
  const archive = archiveOf('1.3.0');
  const refused = () => muster('/x', 'upgrade', archive, '--root', root);
  expect((await refused()).problem).toContain('A checkout: git pull, npm run setup');
  mkdirSync(join(root, 'usr/lib/muster'), { recursive: true });
  writeFileSync(join(root, 'usr/lib/muster/release.json'), '{}');
  expect((await refused()).problem).toContain('apt install ./muster_VERSION_ARCH.deb');
});
