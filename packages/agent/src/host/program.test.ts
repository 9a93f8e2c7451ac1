import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { Program, type ProgramOptions } from './program.ts';

const longMs = 15_000;
const shortMs = 150;

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'muster-program-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function aProgram(script: string, options: Partial<ProgramOptions> = {}): Program {
  const path = join(dir, 'program');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return new Program({ path, environment: { PATH: '/usr/bin:/bin' }, outputBytesMax: 65_536, ...options });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('what it printed, and how it ended', async () => {
  const program = aProgram('echo "$1 $LC_ALL"; echo oops >&2; exit 6');
  expect(await program.run(['-q'], longMs)).toEqual({
    kind: 'exited',
    status: 6,
    stdout: '-q C\n',
    stderr: 'oops\n',
  });
});

test('a program that cannot be started', async () => {
  const missing = new Program({ path: join(dir, 'none'), environment: {}, outputBytesMax: 1000 });
  expect(await missing.run([], longMs)).toEqual({ kind: 'not_started', reason: 'there is no such program' });
  const path = join(dir, 'text');
  writeFileSync(path, 'no program');
  const text = new Program({ path, environment: {}, outputBytesMax: 1000 });
  expect(await text.run([], longMs)).toEqual({ kind: 'not_started', reason: 'it may not be executed' });
  await Promise.all([missing.close(), text.close()]);
});

test('a program is killed with all that it started', async () => {
  const program = aProgram(
    `sleep 600 & echo $! >"${dir}/child.new"; mv "${dir}/child.new" "${dir}/child"; wait`,
  );
  const run = program.run([], longMs);
  await waitFor('its child', () => existsSync(join(dir, 'child')));
  const child = Number(readFileSync(join(dir, 'child'), 'utf8'));
  await program.close();
  expect(await run).toMatchObject({ kind: 'exited', status: null });
  await waitFor('the end of its child', () => !isAlive(child));
});

test('after a hang the next run starts, once the killed one is gone', async () => {
  const program = aProgram(`[ -e "${dir}/mended" ] && exec echo fine; sleep 600`);
  expect(await program.run([], shortMs)).toMatchObject({ kind: 'hung' });
  writeFileSync(join(dir, 'mended'), '');
  expect(await program.run([], longMs)).toMatchObject({ kind: 'exited', stdout: 'fine\n' });
});

test('behind a process that cannot be killed nothing is started, and close waits for it', async () => {
  const program = aProgram(
    `echo start >>"${dir}/starts"; while [ -d "${dir}" ] && [ ! -e "${dir}/release" ]; do sleep 0.05; done`,
    // What SIGKILL does to a process in uninterruptible sleep.
    { killGroup: () => {} },
  );
  const hung = await program.run([], shortMs);
  expect(hung).toMatchObject({ kind: 'hung' });
  expect(await program.run([], shortMs)).toEqual({ ...hung, kind: 'stuck' });
  expect(readFileSync(join(dir, 'starts'), 'utf8')).toBe('start\n');

  let isClosed = false;
  const closing = program.close().then(() => {
    isClosed = true;
  });
  expect(await program.run([], shortMs)).toMatchObject({ kind: 'not_started' });
  expect(isClosed).toBe(false);
  writeFileSync(join(dir, 'release'), '');
  await closing;
  expect(isClosed).toBe(true);
});

test('output without end is cut off, and its program killed', async () => {
  const program = aProgram(`echo head; exec cat /dev/zero`);
  const outcome = await program.run([], longMs);
  expect(outcome).toMatchObject({ kind: 'too_long', stdout: expect.stringMatching(/^head/) });
  expect(outcome.kind === 'too_long' && outcome.stdout.length).toBeLessThan(10_000);
  await program.close();
});

test('runs wait for one another', async () => {
  const program = aProgram(
    `[ -e "${dir}/running" ] && echo overlap; : >"${dir}/running"; sleep 0.05; rm "${dir}/running"; echo "$1"`,
  );
  const outcomes = await Promise.all(['a', 'b', 'c'].map((name) => program.run([name], longMs)));
  expect(outcomes.map((each) => (each.kind === 'exited' ? each.stdout : each.kind))).toEqual([
    'a\n',
    'b\n',
    'c\n',
  ]);
  expect(existsSync(join(dir, 'running'))).toBe(false);
});
