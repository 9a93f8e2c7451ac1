/** The scripts that a machine gets, run by this machine's own shell in a home of their own, with a small release. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import {
  parseFacts,
  placeForUserScript,
  probeScript,
  receiveScript,
  scriptExits,
  tidyScript,
  unpackScript,
} from './hostScripts.ts';
import { openArchive, type ReleaseArchive } from './releaseArchive.ts';

/** @returns the folder of the bundles of a release of some bytes */
function aRelease(version = '0.1.0'): string {
  const top = join(tempDir('release').path, 'muster');
  const lib = join(top, 'lib/muster');
  mkdirSync(join(lib, 'dist'), { recursive: true });
  mkdirSync(join(top, 'bin'));
  writeFileSync(join(lib, 'release.json'), JSON.stringify({ version, arch: 'x64', commit: 'c0ffee' }));
  writeFileSync(join(lib, 'muster'), '#!/bin/sh\necho "muster $1"\n', { mode: 0o755 });
  writeFileSync(join(lib, 'dist/muster.mjs'), version.repeat(1_000));
  writeFileSync(join(lib, 'SHA256SUMS'), `${'0'.repeat(64)}  lib/muster/muster ${version}\n`);
  symlinkSync('../lib/muster/muster', join(top, 'bin/muster'));
  return join(lib, 'dist');
}

function aHome() {
  const home = tempDir('home').path;
  const run = (script: string, input: Buffer = Buffer.alloc(0)) =>
    spawnSync('sh', ['-c', script], { input, encoding: 'utf8', env: { HOME: home, PATH: process.env.PATH } });
  const facts = (archive: ReleaseArchive) => parseFacts(run(probeScript(archive, 'user')).stdout);
  const incoming = join(home, '.cache/muster-node-add');
  return { home, run, facts, incoming };
}

const archiveOf = (programDir: string) => openArchive(null, { programDir, workingDir: programDir });

test('the same release gives the same archive; its facts are those of the archive as a file', async () => {
  const programDir = aRelease();
  const [first, again] = [await archiveOf(programDir), await archiveOf(programDir)];
  expect(again.sum).toBe(first.sum);
  expect(createHash('sha256').update(readFileSync(first.path)).digest('hex')).toBe(first.sum);
  const dir = tempDir('archive').path;
  const top = join(programDir, '../../..');
  execFileSync('tar', ['-czf', join(dir, 'a.tar.gz'), '-C', join(top, '..'), 'muster']);
  const named = await openArchive('a.tar.gz', { programDir: '/nowhere', workingDir: dir });
  expect(named).toMatchObject({ version: '0.1.0', arch: 'x64', release: first.release });
  first.close();
  expect(existsSync(first.path)).toBe(false);
});

test('what is not an archive, and a program that is not from one, are refused with the remedy', async () => {
  const dir = tempDir('archive').path;
  writeFileSync(join(dir, 'x.tar.gz'), 'no archive');
  const place = { programDir: '/usr/lib/muster/dist', workingDir: dir };
  await expect(openArchive('x.tar.gz', place)).rejects.toThrow('it is not an archive of a release');
  await expect(openArchive('missing.tar.gz', place)).rejects.toThrow('it does not exist');
  await expect(openArchive(null, place)).rejects.toMatchObject({
    hints: [expect.stringContaining('--release'), expect.stringContaining('npm run package')],
  });
});

test('an archive that is damaged, and one of which only a part has arrived, are to be copied again', async () => {
  const archive = await archiveOf(aRelease());
  const bytes = readFileSync(archive.path);
  const workingDir = tempDir('archive').path;
  const half = Math.floor(bytes.length / 2);
  const flipped = Buffer.from(bytes);
  flipped[half] = (flipped[half] ?? 0) ^ 0xff;
  for (const [name, content] of Object.entries({ half: bytes.subarray(0, half), flipped })) {
    writeFileSync(join(workingDir, name), content);
    await expect(openArchive(name, { programDir: '/nowhere', workingDir }), name).rejects.toThrow(
      'Copy it again',
    );
  }
});

test('a copy that was interrupted is continued, and has its name only when all of it is there', async () => {
  const archive = await archiveOf(aRelease());
  const bytes = readFileSync(archive.path);
  const { home, run, facts, incoming } = aHome();
  expect(facts(archive)).toMatchObject({ kernel: 'Linux', partBytes: 0, isUnpacked: false, installed: '' });
  const half = Math.floor(bytes.length / 2);
  expect(run(receiveScript(archive, 0, 'user'), bytes.subarray(0, half)).status).toBe(0);
  expect(run(unpackScript(archive, 'user')).status).toBe(scriptExits.incomplete);
  expect(facts(archive)).toMatchObject({ partBytes: half, isUnpacked: false });
  // Another run has continued meanwhile.
  expect(run(receiveScript(archive, half - 1, 'user'), bytes).status).toBe(scriptExits.changed);
  expect(run(receiveScript(archive, half, 'user'), bytes.subarray(half)).status).toBe(0);
  expect(run(unpackScript(archive, 'user')).status).toBe(0);
  expect(facts(archive)).toMatchObject({ isUnpacked: true, partBytes: 0 });
  expect(readdirSync(incoming).sort()).toEqual([archive.sum, 'lock']);

  expect(run(placeForUserScript(archive)).status).toBe(0);
  expect(facts(archive)).toMatchObject({ installed: archive.release, isUnpacked: false });
  const muster = join(home, '.local/share/muster/releases/current/bin/muster');
  expect(execFileSync(muster, ['--version'], { encoding: 'utf8' })).toBe('muster --version\n');
  run(tidyScript('user'));
  expect(existsSync(incoming)).toBe(false);

  // Another release takes its place; one of the same name is replaced.
  const next = await archiveOf(aRelease('0.2.0'));
  for (const _ of [1, 2]) {
    run(receiveScript(next, 0, 'user'), readFileSync(next.path));
    run(unpackScript(next, 'user'));
    expect(run(placeForUserScript(next)).status).toBe(0);
    expect(facts(next).installed).toBe(next.release);
  }
});

test('what arrived damaged is thrown away', async () => {
  const archive = await archiveOf(aRelease());
  const bytes = readFileSync(archive.path);
  const { run, facts, incoming } = aHome();
  run(receiveScript(archive, 0, 'user'), bytes);
  truncateSync(join(incoming, `${archive.sum}.part`), 10);
  run(receiveScript(archive, 10, 'user'), Buffer.alloc(bytes.length - 10));
  expect(run(unpackScript(archive, 'user')).status).toBe(scriptExits.wrongSum);
  expect(facts(archive)).toMatchObject({ partBytes: 0, isUnpacked: false });
});

test('what is longer than the archive is thrown away, so that it is copied from its start', async () => {
  const archive = await archiveOf(aRelease());
  const bytes = readFileSync(archive.path);
  const { run, facts } = aHome();
  run(receiveScript(archive, 0, 'user'), Buffer.concat([bytes, bytes]));
  expect(facts(archive).partBytes).toBe(2 * bytes.length);
  expect(run(unpackScript(archive, 'user')).status).toBe(scriptExits.incomplete);
  expect(run(receiveScript(archive, 0, 'user'), bytes).status).toBe(0);
  expect(run(unpackScript(archive, 'user')).status).toBe(0);
  expect(facts(archive).isUnpacked).toBe(true);
});

test('settings and a credential that are there are reported, with and without quotes', async () => {
  const archive = await archiveOf(aRelease());
  const { home, facts } = aHome();
  mkdirSync(join(home, '.config/muster'), { recursive: true });
  mkdirSync(join(home, '.local/share/muster-agent'), { recursive: true });
  writeFileSync(
    join(home, '.config/muster/agent.yaml'),
    'name: gpu-1\n#coordinator: a\ncoordinator: "[fd00::1]:7070"\n',
  );
  writeFileSync(join(home, '.local/share/muster-agent/credential'), '');
  expect(facts(archive)).toMatchObject({ node: 'gpu-1', coordinator: '[fd00::1]:7070', hasJoined: true });
});
