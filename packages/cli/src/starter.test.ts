/** The first file of the built program, with a script in place of the short commands. */
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterEach, beforeEach, expect, test } from 'vitest';

const shortFile = 'part-short-0123.js';
/** A script as the bundler makes it, with a function that is compiled when it is invoked. */
const script = `(function (require, __dirname, __filename) {
  function late() { return require('node:path').basename(__filename) + ' ' + process.argv.slice(2).join(' '); }
  console.log(late());
})`;

let folder: string;
/** As HOME. */
let home: string;
let program: string;
let caches: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-starter-'));
  home = folder;
  program = join(home, 'dist/muster.mjs');
  caches = join(home, '.cache/muster/compiled');
  await build({
    entryPoints: [join(import.meta.dirname, 'starter.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    external: ['./main.mjs'],
    define: {
      __SHORT_COMMANDS__: '["jobs", "submit"]',
      __SHORT_FILE__: JSON.stringify(shortFile),
      __MAIN_FILE__: '"./main.mjs"',
      __IS_RELEASE__: 'true',
    },
  });
  writeFileSync(join(home, 'dist', shortFile), script);
  writeFileSync(join(home, 'dist/main.mjs'), 'console.log("main", ...process.argv.slice(2));');
});

afterEach(() => rmSync(folder, { recursive: true }));

function start(...args: readonly string[]): string {
  return execFileSync(process.execPath, [program, ...args], { env: { HOME: home }, encoding: 'utf8' });
}

/** The files in which the compiled code of commands is kept. */
function kept(): readonly string[] {
  return readdirSync(caches).filter((name) => name.startsWith('part-short-'));
}

test('short commands are the script, all others the main module', () => {
  expect(start('jobs', '--all')).toBe(`${shortFile} jobs --all\n`);
  expect(start('up')).toBe('main up\n');
  expect(start()).toBe('main\n');
});

test('keeps the compiled code of each command, and takes it the next time', () => {
  start('jobs');
  start('submit');
  expect(kept()).toEqual([`${shortFile}.jobs`, `${shortFile}.submit`]);
  const path = join(caches, `${shortFile}.jobs`);
  const { ino, mode } = statSync(path);
  expect(mode & 0o777).toBe(0o600);
  expect(start('jobs')).toBe(`${shortFile} jobs\n`);
  // If V8 had rejected the compiled code, the file would have been rewritten.
  expect(statSync(path).ino).toBe(ino);
});

test.each(['', 'no compiled code'])('replaces a damaged file: %j', (damaged) => {
  start('jobs');
  const path = join(caches, `${shortFile}.jobs`);
  writeFileSync(path, damaged);
  expect(start('jobs')).toBe(`${shortFile} jobs\n`);
  expect(statSync(path).size).toBeGreaterThan(200);
});

test('removes what an earlier version has kept', () => {
  mkdirSync(caches, { recursive: true });
  writeFileSync(join(caches, 'part-short-earlier.js.jobs'), '');
  start('jobs');
  expect(kept()).toEqual([`${shortFile}.jobs`]);
});

test('runs where nothing can be kept', () => {
  mkdirSync(join(home, '.cache/muster'), { recursive: true });
  writeFileSync(caches, 'not a folder');
  expect(start('jobs')).toBe(`${shortFile} jobs\n`);
});

test('keeps and takes nothing in the home of another user', () => {
  start('jobs');
  const path = join(caches, `${shortFile}.jobs`);
  writeFileSync(path, 'code of another user');
  if (process.getuid?.() === 0) chownSync(home, 65_534, 65_534);
  else home = '/';
  expect(start('jobs')).toBe(`${shortFile} jobs\n`);
  expect(statSync(path).size).toBe('code of another user'.length);
});
