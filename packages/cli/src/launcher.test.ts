/** `bin/muster`, the shell script before everything else, in a checkout of its own with a program that shows what it was given. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

const launcher = join(import.meta.dirname, '../bin/muster');
/** A program that prints its own name and arguments. */
const shownCall = 'console.log(process.env.MUSTER_CALLED_AS, ...process.argv.slice(2));';
const nodeFolder = join(process.execPath, '..');

let home: string;
let checkout: string;

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'muster-launcher-')));
  checkout = join(home, 'src');
  await mkdir(join(checkout, 'packages/cli/bin'), { recursive: true });
  await copyFile(launcher, join(checkout, 'packages/cli/bin/muster'));
  await symlink('packages/cli/bin/muster', join(checkout, 'muster'));
});

afterEach(() => rm(home, { recursive: true }));

/** With the Node that runs this test where npm puts Node 24, and `shownCall` for a program. */
async function setUp(): Promise<void> {
  const bin = join(checkout, `node_modules/node-linux-${process.arch}/bin`);
  await mkdir(bin, { recursive: true });
  await symlink(process.execPath, join(bin, 'node'));
  await mkdir(join(checkout, 'dist'));
  await writeFile(join(checkout, 'dist/muster.mjs'), shownCall);
}

interface Call {
  readonly cwd?: string;
  /** Folders before those of the system. */
  readonly path?: readonly string[];
}

function call(program: string, { cwd = home, path = [] }: Call = {}): Promise<string> {
  const env = { HOME: home, PATH: [...path, '/usr/bin', '/bin'].join(':') };
  // A shell finds the program, as it does for people.
  const argv = ['-c', 'exec "$@"', 'sh', program, 'jobs', 'a b'];
  return new Promise((resolve) => {
    execFile('/bin/sh', argv, { cwd, env }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

test('starts from any directory, and names itself as it was called', async () => {
  await setUp();
  expect(await call('./muster', { cwd: checkout })).toBe('./muster jobs a b\n');
  expect(await call('src/muster')).toBe('src/muster jobs a b\n');
  expect(await call(join(checkout, 'muster'), { cwd: '/' })).toBe('~/src/muster jobs a b\n');
  expect(await call('muster', { path: [checkout], cwd: '/' })).toBe('muster jobs a b\n');
});

test('starts through links on PATH, and names itself in one word', async () => {
  await setUp();
  await mkdir(join(home, 'bin'));
  await symlink(join(checkout, 'muster'), join(home, 'bin/muster'));
  expect(await call('muster', { path: [join(home, 'bin')] })).toBe('muster jobs a b\n');
});

test('a name with a space is quoted, and npm is not part of the name', async () => {
  await setUp();
  await mkdir(join(home, 'my tools'));
  await symlink(join(checkout, 'muster'), join(home, 'my tools/muster'));
  expect(await call(join(home, 'my tools/muster'))).toBe(`'${home}/my tools/muster' jobs a b\n`);

  const bin = join(checkout, 'node_modules/.bin');
  await mkdir(bin);
  await symlink('../../packages/cli/bin/muster', join(bin, 'muster'));
  expect(await call('muster', { path: [bin], cwd: checkout })).toBe('./muster jobs a b\n');
  expect(await call('muster', { path: [bin] })).toBe('~/src/muster jobs a b\n');
});

test('says what is missing and how to get it', async () => {
  const remedy = `Run once: cd '${checkout}' && npm run setup\n`;
  expect(await call('src/muster')).toBe(
    `muster: this checkout is not set up: its packages are not installed and nothing is built\n${remedy}`,
  );
  await mkdir(join(checkout, 'node_modules'));
  await mkdir(join(home, 'old'));
  await writeFile(join(home, 'old/node'), '#!/bin/sh\necho v18.20.4\n');
  await chmod(join(home, 'old/node'), 0o755);
  expect(await call('src/muster', { path: [join(home, 'old')] })).toBe(
    `muster: Node 24 is missing from node_modules, and the Node on PATH is v18.20.4\n${remedy}`,
  );
  expect(await call('src/muster', { path: [nodeFolder] })).toBe(
    `muster: this checkout is not built: dist/muster.mjs is missing\n${remedy}`,
  );
});

test('installed, it starts the Node and the programs beside it, through the link on PATH', async () => {
  const installed = join(home, 'usr/lib/muster');
  await mkdir(join(installed, 'dist'), { recursive: true });
  await mkdir(join(home, 'usr/bin'));
  await copyFile(launcher, join(installed, 'muster'));
  await symlink('../lib/muster/muster', join(home, 'usr/bin/muster'));
  await symlink(process.execPath, join(installed, 'node'));
  expect(await call('muster', { path: [join(home, 'usr/bin')] })).toBe(
    'muster: this installation is not whole: dist/muster.mjs is missing\nInstall Muster again.\n',
  );
  await writeFile(join(installed, 'dist/muster.mjs'), shownCall);
  expect(await call('muster', { path: [join(home, 'usr/bin')] })).toBe('muster jobs a b\n');
  // Units name the launcher itself.
  expect(await call(join(installed, 'muster'), { path: [join(home, 'usr/bin')] })).toBe('muster jobs a b\n');
  expect(await call('usr/bin/muster')).toBe('usr/bin/muster jobs a b\n');
});
