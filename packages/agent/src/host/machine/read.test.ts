import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readMachineFacts } from './read.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-machine-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const reader = { nodePath: process.execPath, searchPath: '/usr/sbin:/usr/bin:/sbin:/bin' };
const never = new AbortController().signal;

function aProgram(text: string): string {
  const path = join(directory, 'reader.mjs');
  writeFileSync(path, text);
  return path;
}

/** Whether there is such a process, and it has not ended. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

test('this machine, whatever it tells of itself', async () => {
  const facts = await readMachineFacts(never, reader);
  expect(Object.keys(facts).sort()).toEqual(['bios', 'board', 'disks', 'memoryModules', 'model']);
  for (const { model } of facts.disks) expect(model).not.toBe('');
  for (const { sizeBytes } of facts.memoryModules) expect(sizeBytes).toBeGreaterThan(0);
});

test.each([
  ['fails', 'process.exit(3)'],
  ['prints something else', 'console.log("hello")'],
  ['prints without end', 'for (;;) process.stdout.write("x".repeat(65536))'],
])('a reader that %s is an error and nothing more', async (_, text) => {
  await expect(readMachineFacts(never, { ...reader, program: aProgram(text) })).rejects.toThrow(Error);
});

test.each([
  ['its deadline', /it took more than 500 ms/],
  ['the agent', /abort/],
])('one that hangs ends with %s, and so does what it waits for', async (what, message) => {
  const closing = new AbortController();
  const pidFile = join(directory, 'pid');
  const program = aProgram(`
    import { spawn } from 'node:child_process';
    import { renameSync, writeFileSync } from 'node:fs';
    const { pid } = spawn('sleep', ['1000']);
    writeFileSync(${JSON.stringify(pidFile)} + '.new', String(pid));
    renameSync(${JSON.stringify(pidFile)} + '.new', ${JSON.stringify(pidFile)});
    setInterval(() => {}, 1000);
  `);
  const patience = what === 'the agent' ? {} : { deadlineMs: 500 };
  const reading = readMachineFacts(closing.signal, { ...reader, program, ...patience });
  const ended = reading.then(String, String);
  if (what === 'the agent') {
    await vi.waitFor(() => statSync(pidFile));
    closing.abort();
  }
  expect(await ended).toMatch(message);
  // On a slow machine the deadline may come before it has started anything.
  const pid = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : null;
  if (pid !== null) await vi.waitFor(() => expect(isRunning(pid)).toBe(false));
});

test('nothing is left running for an agent that ends before it has asked', async () => {
  const program = aProgram('setInterval(() => {}, 1000)');
  await expect(readMachineFacts(AbortSignal.abort(), { ...reader, program })).rejects.toThrow(/abort/);
});

test('it gets nothing of the environment but where programs are', async () => {
  process.env['MUSTER_JOIN_TOKEN'] = 'secret';
  try {
    const program = aProgram(
      'console.log(JSON.stringify({ disks: [], memoryModules: [], model: Object.keys(process.env).sort().join(" ") }))',
    );
    expect((await readMachineFacts(never, { ...reader, program })).model).toBe('LC_ALL PATH');
  } finally {
    delete process.env['MUSTER_JOIN_TOKEN'];
  }
});
