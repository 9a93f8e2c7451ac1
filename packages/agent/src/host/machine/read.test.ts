import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
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

test('one that hangs ends with the agent', async () => {
  const closing = new AbortController();
  const reading = readMachineFacts(closing.signal, {
    ...reader,
    program: aProgram('setInterval(() => {}, 1000)'),
  });
  closing.abort();
  await expect(reading).rejects.toThrow(/abort/i);
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
