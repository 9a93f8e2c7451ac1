/** Releases that `install` copies to where services see them: real files, in a system image. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { newCall } from '../testing/testContext.ts';
import { unpackedRelease } from './releaseFixture.ts';

function image(): string {
  const { path } = tempDir('image');
  mkdirSync(join(path, 'etc'));
  writeFileSync(join(path, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  writeFileSync(join(path, 'etc/group'), 'root:x:0:\n');
  return path;
}

async function muster(programDir: string, ...argv: readonly string[]) {
  const { context, stdout, stderr } = newCall(null, { environment: { programDir, uid: 0 } });
  const exitCode = await runCli(argv, context);
  return { exitCode, lines: stdout().split('\n').slice(0, -1), problem: stderr() };
}

test('a release is copied once, linked, and run by the units; uninstall removes it', async () => {
  const root = image();
  const top = join(tempDir('unpacked').path, 'muster-1.2.3');
  const programDir = unpackedRelease(top);
  const shown = await muster(programDir, 'install', 'coordinator', '--root', root, '--dry-run');
  expect(readdirSync(root)).toEqual(['etc']);
  const done = await muster(programDir, 'install', 'coordinator', '--root', root);
  expect(done.exitCode, done.problem).toBe(exitCodes.ok);
  expect(done.lines).toEqual(shown.lines);
  expect(done.lines.slice(0, 3)).toEqual([
    'copy the release 1.2.3 (c0ffee00) to /opt/muster/1.2.3',
    'point /opt/muster/current to 1.2.3',
    'point /usr/local/bin/muster to /opt/muster/current/bin/muster',
  ]);
  const place = join(root, 'opt/muster/1.2.3');
  execFileSync('sha256sum', ['--check', '--quiet', 'lib/muster/SHA256SUMS'], { cwd: place });
  expect(lstatSync(join(place, 'lib/muster/muster')).mode & 0o777).toBe(0o755);
  expect(realpathSync(join(root, 'opt/muster/current/bin/muster'))).toBe(
    realpathSync(join(place, 'lib/muster/muster')),
  );
  const unit = readFileSync(join(root, 'etc/systemd/system/muster-coordinator.service'), 'utf8');
  expect(unit).toContain('ExecStart=/opt/muster/current/lib/muster/muster coordinator');

  // From the archive, and from the copy once the archive is gone: nothing changes.
  expect((await muster(programDir, 'install', 'coordinator', '--root', root)).lines).toEqual([]);
  rmSync(top, { recursive: true });
  const copied = join(place, 'lib/muster/dist');
  expect((await muster(copied, 'install', 'coordinator', '--root', root)).problem).toBe(
    'Nothing to change.\n',
  );

  const second = await muster(copied, 'install', 'agent', '--root', root, '--coordinator', '127.0.0.1:7070');
  expect(second.exitCode, second.problem).toBe(exitCodes.ok);
  await muster(copied, 'uninstall', 'agent', '--root', root);
  expect(existsSync(place)).toBe(true);
  const removed = await muster(copied, 'uninstall', '--root', root);
  expect(removed.lines.slice(-2)).toEqual(['remove /usr/local/bin/muster', 'remove /opt/muster']);
  expect(existsSync(join(root, 'opt/muster'))).toBe(false);
});

test('another version, another build and a damaged copy each get what they need', async () => {
  const root = image();
  const unpacked = tempDir('unpacked').path;
  const install = (programDir: string) => muster(programDir, 'install', 'coordinator', '--root', root);
  const first = unpackedRelease(join(unpacked, '1'));
  await install(first);
  const newer = await install(unpackedRelease(join(unpacked, '2'), '1.3.0'));
  expect(newer.lines).toEqual([
    'copy the release 1.3.0 (c0ffee00) to /opt/muster/1.3.0',
    'point /opt/muster/current to 1.3.0, instead of 1.2.3',
  ]);
  await install(unpackedRelease(join(unpacked, '3'), '1.3.0', 'beef0000beef'));
  expect(readlinkSync(join(root, 'opt/muster/current'))).toBe('1.3.0+beef0000');

  // As an interrupted copy and a disk without space leave it.
  const place = join(root, 'opt/muster/1.2.3');
  truncateSync(join(place, 'lib/muster/muster'), 3);
  mkdirSync(join(root, 'opt/muster/.1.2.3.part/bin'), { recursive: true });
  const repaired = await install(first);
  expect(repaired.lines).toEqual([
    'replace the damaged release 1.2.3 (c0ffee00) to /opt/muster/1.2.3',
    'point /opt/muster/current to 1.2.3, instead of 1.3.0+beef0000',
  ]);
  expect(readdirSync(join(root, 'opt/muster')).sort()).toEqual([
    '1.2.3',
    '1.3.0',
    '1.3.0+beef0000',
    'current',
  ]);
});

test.each([
  ['a file is missing', (top: string) => rmSync(join(top, 'lib/muster/muster')), 'muster is missing'],
  [
    'a file is cut off',
    (top: string) => truncateSync(join(top, 'lib/muster/muster'), 4),
    'muster is not the file',
  ],
  [
    'the sums are missing',
    (top: string) => rmSync(join(top, 'lib/muster/SHA256SUMS')),
    'SHA256SUMS is missing',
  ],
  [
    'the sums are empty',
    (top: string) => truncateSync(join(top, 'lib/muster/SHA256SUMS')),
    'SHA256SUMS is not',
  ],
  [
    'the sums lead elsewhere',
    (top: string) =>
      appendFileSync(join(top, 'lib/muster/SHA256SUMS'), `${'0'.repeat(64)}  ../../etc/passwd\n`),
    'SHA256SUMS is not',
  ],
  [
    'there is a program more',
    (top: string) => writeFileSync(join(top, 'lib/muster/dist/more.mjs'), ''),
    'dist/more.mjs is not',
  ],
])('a release of which %s is refused, and nothing changes', async (_what, damage, message) => {
  const root = image();
  const top = join(tempDir('unpacked').path, 'muster-1.2.3');
  const programDir = unpackedRelease(top);
  damage(top);
  const { exitCode, lines, problem } = await muster(programDir, 'install', 'coordinator', '--root', root);
  expect(problem).toContain(`is damaged: lib/muster/${message}`);
  expect([exitCode, lines]).toEqual([exitCodes.refused, []]);
  expect(readdirSync(root)).toEqual(['etc']);
});

test('what is not a release or a link of Muster is left alone', async () => {
  const root = image();
  const programDir = unpackedRelease(join(tempDir('unpacked').path, 'muster-1.2.3'));
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  writeFileSync(join(root, 'usr/local/bin/muster'), 'mine');
  const refused = await muster(programDir, 'install', 'coordinator', '--root', root);
  expect(refused.problem).toContain('/usr/local/bin/muster is in the way: it is not a link');
  rmSync(join(root, 'usr/local/bin/muster'));
  symlinkSync('/elsewhere', join(root, 'usr/local/bin/muster'));
  const linked = await muster(programDir, 'install', 'coordinator', '--root', root);
  expect(linked.lines[0]).toBe(
    'point /usr/local/bin/muster to /opt/muster/current/bin/muster, instead of /elsewhere',
  );

  writeFileSync(join(root, 'opt/muster/notes'), 'mine');
  await muster(programDir, 'uninstall', '--root', root);
  expect(readdirSync(join(root, 'opt/muster'))).toEqual(['notes']);

  writeFileSync(join(root, 'opt/muster/package.json'), '{}');
  const checkout = await muster(programDir, 'install', 'coordinator', '--root', root);
  expect(checkout.problem).toContain('/opt/muster is a checkout, and releases are kept there');
});
