import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { patienceMs } from '../../../../test/support/patience.ts';
import { KernelLog, type KernelRecord } from './kernelLog.ts';

let directory: string;
let seen: { text: string; history: boolean }[];
let warnings: string[];
const opened: KernelLog[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-kernel-log-'));
  seen = [];
  warnings = [];
});

afterEach(() => {
  for (const log of opened.splice(0)) log.close();
  rmSync(directory, { recursive: true, force: true });
});

function open(path: string): KernelLog {
  const log = new KernelLog({
    path,
    onRecord: (record: KernelRecord, history) => seen.push({ text: record.text, history }),
    log: { ...silentLogger, warn: (_, message) => warnings.push(message) },
  });
  opened.push(log);
  log.open();
  return log;
}

const line = (sequence: number, text: string) => `4,${sequence},1000,-;${text}\n`;

async function until(condition: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(condition()).toBe(true));
}

test('what was there before is history, what comes later is not', async () => {
  const path = join(directory, 'log');
  writeFileSync(path, `${line(1, 'old')} SUBSYSTEM=pci\n${line(2, 'older')}`);
  open(path);
  expect(seen).toEqual([
    { text: 'old', history: true },
    { text: 'older', history: true },
  ]);
  appendFileSync(path, line(3, 'new').slice(0, 8));
  appendFileSync(path, line(3, 'new').slice(8));
  await until(() => seen.length === 3);
  expect(seen[2]).toEqual({ text: 'new', history: false });
});

test('a flood is read in pieces, and all of it', async () => {
  const path = join(directory, 'log');
  writeFileSync(path, Array.from({ length: 3_000 }, (_, index) => line(index, `r${index}`)).join(''));
  open(path);
  expect(seen.length).toBeLessThan(2_000);
  await until(() => seen.length === 3_000);
  expect(seen.at(-1)?.text).toBe('r2999');
});

test('a line without end is dropped, and the next is read', async () => {
  const path = join(directory, 'log');
  writeFileSync(path, `4,1,0,-;${'x'.repeat(200_000)}\n${line(2, 'next')}`);
  open(path);
  await until(() => seen.some(({ text }) => text === 'next'));
});

test('a pipe without a writer blocks nothing, and is read once there is one', async () => {
  const path = join(directory, 'pipe');
  execFileSync('mkfifo', [path]);
  open(path);
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  writeSync(writer, line(1, 'through the pipe'));
  await until(() => seen.length === 1);
  closeSync(writer);
});

test('a kernel log that is not there is reported once, with the remedy', () => {
  const log = open(join(directory, 'absent'));
  expect(log.state).toMatchObject({ kind: 'unavailable' });
  expect(warnings).toEqual([
    `there is no kernel log at ${directory}/absent: Xids are seen only where NVML announces them, SXids not at all; ` +
      `make ${directory}/absent visible to the agent`,
  ]);
});

test('what cannot be read is given up', () => {
  expect(open(directory).state).toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('cannot be read (EISDIR'),
  });
  expect(warnings).toHaveLength(1);
});

test('nothing is reported after closing', async () => {
  const path = join(directory, 'log');
  writeFileSync(path, '');
  const log = open(path);
  log.close();
  appendFileSync(path, line(1, 'too late'));
  expect(log.state).toEqual({ kind: 'closed' });
  expect(seen).toEqual([]);
});

test('the log of this kernel is read to its end, or the refusal is reported', async () => {
  const sequences: number[] = [];
  const log = new KernelLog({
    path: '/dev/kmsg',
    onRecord: ({ sequence }, history) => {
      sequences.push(sequence);
      if (sequences.length === 1) expect(history).toBe(true);
    },
    log: silentLogger,
  });
  opened.push(log);
  log.open();
  await until(() => log.state.kind === 'unavailable' || sequences.length > 0);
  expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
  if (log.state.kind === 'unavailable') expect(log.state.message).toContain('/dev/kmsg');
});

test('the process ends although the log is open for reading', () => {
  const path = join(directory, 'pipe');
  execFileSync('mkfifo', [path]);
  const module = join(import.meta.dirname, 'kernelLog.ts');
  const script = `
    import { KernelLog } from ${JSON.stringify(module)};
    const log = new KernelLog({ path: ${JSON.stringify(path)}, onRecord() {}, log: console });
    log.open();
    log.close();
    console.log('closed');`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    timeout: patienceMs,
  });
  expect(output.toString()).toContain('closed');
});

test('as standard input it is read without waiting, by an agent that could not open it', async () => {
  // A pipe, which like the kernel log makes its readers wait, with an end that stays open.
  const program = `
    import { KernelLog } from ${JSON.stringify(join(import.meta.dirname, 'kernelLog.ts'))};
    const log = { info() {}, debug() {}, warn(_, text) { console.log(text); }, error() {} };
    const seen = [];
    const onRecord = (record, history) => seen.push(record.text + ' ' + history);
    const kernelLog = new KernelLog({ path: '-', log, onRecord });
    kernelLog.open();
    console.log(seen.join(), kernelLog.state.kind);
    kernelLog.close();
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stdin.write(line(1, 'old'));
  const [code] = await once(child, 'exit');
  expect([output, code]).toEqual(['old true reading\n', 0]);
});
