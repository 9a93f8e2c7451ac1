import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { LogStore } from './logStore.ts';
import { readBytes } from './tail.ts';

const task = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };

let directory: string;
let logs: LogStore;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-logs-'));
  logs = new LogStore(directory);
});
afterEach(async () => {
  await logs.close();
  rmSync(directory, { recursive: true });
});

const bytes = (text: string) => Buffer.from(text);

async function textOf(store: LogStore = logs): Promise<string> {
  return Buffer.from(await store.read(task, 0, 1_000_000)).toString();
}

/** Descriptors of this process that lead into the directory. */
function openFiles(): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(directory) ? [path] : [];
    } catch {
      return [];
    }
  });
}

/** Of output on disk. */
function storedBytes(): number {
  const folder = join(directory, task.jobId);
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

/** In the place of the task's file, to meet its errors. */
function replaceFileBy(device: string): void {
  mkdirSync(join(directory, task.jobId));
  symlinkSync(device, join(directory, task.jobId, '1.0.log'));
}

test('pieces are put together, what is sent again is skipped, and the answer says where to go on', async () => {
  expect(await logs.append(task, 0, bytes('hello '))).toBe(6);
  expect(await logs.append(task, 0, bytes('hello '))).toBe(6);
  expect(await logs.append(task, 3, bytes('lo world'))).toBe(11);
  expect(await textOf()).toBe('hello world');
});

test('a piece behind a gap is refused, and nothing is written', async () => {
  await logs.append(task, 0, bytes('abc'));
  expect(await logs.append(task, 5, bytes('fg'))).toBe(3);
  expect(await textOf()).toBe('abc');
});

test('two connections that send the same output at once write it once', async () => {
  const whole = 'a line of output\n'.repeat(200);
  const sendAll = async () => {
    for (let offset = 0; offset < whole.length; )
      offset = Math.max(offset, await logs.append(task, offset, bytes(whole.slice(offset, offset + 100))));
  };
  await Promise.all([sendAll(), sendAll()]);
  expect(await textOf()).toBe(whole);
});

test('a store opened anew goes on at the size of the file', async () => {
  await logs.append(task, 0, bytes('abc'));
  await logs.close();
  logs = new LogStore(directory);
  expect(await logs.size(task)).toBe(3);
  expect(await logs.append(task, 0, bytes('abcdef'))).toBe(6);
  expect(await textOf()).toBe('abcdef');
});

test('output is complete when all of it is here, and its file is closed, also when its end is sent again', async () => {
  await logs.append(task, 0, bytes('abc'));
  expect(await logs.complete(task, 4)).toBe(false);
  expect(openFiles()).toHaveLength(1);
  expect(await logs.complete(task, 3)).toBe(true);
  expect(openFiles()).toEqual([]);
  expect(await logs.append(task, 0, bytes('abc'))).toBe(3);
  expect(await logs.complete(task, 3)).toBe(true);
  expect(openFiles()).toEqual([]);
});

test('no output at all is complete without a file', async () => {
  expect(await logs.append(task, 0, bytes(''))).toBe(0);
  expect(await logs.complete(task, 0)).toBe(true);
  expect(await logs.size(task)).toBe(0);
  expect(await logs.read(task, 0, 10)).toHaveLength(0);
});

test('output that is never completed does not hold a descriptor for ever', async () => {
  for (let attempt = 1; attempt <= 600; attempt += 1) await logs.append({ ...task, attempt }, 0, bytes('x'));
  expect(openFiles().length).toBeLessThanOrEqual(513);
  expect(await logs.append(task, 1, bytes('yz'))).toBe(3);
  expect(await textOf()).toBe('xyz');
});

test('a write that fails is not acknowledged', async () => {
  replaceFileBy('/dev/full');
  await expect(logs.append(task, 0, bytes('abc'))).rejects.toThrow('ENOSPC');
  expect(await logs.size(task)).toBe(0);
});

test('of a write that is cut short, only what was written is acknowledged', () => {
  const script = `
    import { LogStore } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'logStore.ts')).href)};
    const logs = new LogStore(${JSON.stringify(directory)});
    console.log(await logs.append(${JSON.stringify(task)}, 0, Buffer.alloc(3_000, 'x')));
    await logs.close();`;
  // The limit of one block of 1,024 bytes stands for a disk that fills up in the middle of a write.
  const shell = 'ulimit -f 1; exec "$0" --input-type=module -e "$1"';
  const answer = execFileSync('bash', ['-c', shell, process.execPath, script], { encoding: 'utf8' });
  expect(answer.trim()).toBe('1024');
  expect(readFileSync(join(directory, task.jobId, '1.0.log'))).toHaveLength(1_024);
});

test('output whose sync failed is not complete, and has to be sent again', async () => {
  replaceFileBy('/dev/null');
  await logs.append(task, 0, bytes('abc'));
  await expect(logs.complete(task, 3)).rejects.toThrow('EINVAL');
  expect(await logs.size(task)).toBe(0);
  expect(await logs.complete(task, 3)).toBe(false);
});

test('a watcher learns of every append until it stops', async () => {
  let heard = 0;
  const stop = logs.watch(task, () => {
    heard += 1;
  });
  await logs.append(task, 0, bytes('a'));
  await logs.append({ ...task, nodeRank: 1 }, 0, bytes('b'));
  expect(heard).toBe(1);
  stop();
  await logs.append(task, 1, bytes('c'));
  expect(heard).toBe(1);
});

test.each([
  ['', 1, ''],
  ['one', 1, 'one'],
  ['one\n', 1, 'one\n'],
  ['one\ntwo\n', 1, 'two\n'],
  ['one\ntwo\nthree', 2, 'two\nthree'],
  ['one\r\ntwo\r\n', 1, 'two\r\n'],
  ['\n\n\n', 2, '\n\n'],
  ['one\ntwo\n', 9, 'one\ntwo\n'],
  [`one\n${'x'.repeat(3 * readBytes)}\n`, 1, `${'x'.repeat(3 * readBytes)}\n`],
  [`${'x'.repeat(readBytes - 1)}\ntwo\n`, 1, 'two\n'],
])('the tail of a log (%#)', async (text, lines, tail) => {
  await logs.append(task, 0, bytes(text));
  expect(text.slice(await logs.tailOffset(task, lines))).toBe(tail);
});

describe('a cap of what is kept of one task', () => {
  const capBytes = 64 * 1024;
  const truncations: string[] = [];
  const capped = () =>
    new LogStore(directory, { capBytes, onTruncated: (_, reason) => void truncations.push(reason) });
  /** Different everywhere, so that any byte out of place shows. */
  const whole = Buffer.from(Array.from({ length: 100_000 }, (_, line) => `line ${line}\n`).join(''));

  beforeEach(() => {
    truncations.length = 0;
    logs = capped();
  });

  async function sendAll(): Promise<void> {
    for (let offset = 0; offset < whole.length; ) {
      const piece = whole.subarray(offset, offset + 1_000);
      offset = await logs.append(task, offset, piece);
      expect(storedBytes()).toBeLessThanOrEqual(capBytes + piece.length);
    }
  }

  /** What a reader gets: pieces, and the gaps between them. */
  async function readAll(): Promise<{ pieces: string[]; missing: number }> {
    const pieces = [''];
    let missing = 0;
    for (let at = 0; ; ) {
      const data = await logs.read(task, at, 10_000);
      const gap = data.length === 0 ? await logs.gapAt(task, at) : null;
      if (data.length === 0 && gap === null) return { pieces, missing };
      if (gap === null) pieces[pieces.length - 1] += Buffer.from(data).toString();
      else pieces.push('');
      missing += gap === null ? 0 : gap.to - at;
      at = gap === null ? at + data.length : gap.to;
    }
  }

  test('the beginning and the end stay, and nobody is asked for anything twice', async () => {
    await sendAll();
    expect(await logs.complete(task, whole.length)).toBe(true);
    const { pieces, missing } = await readAll();
    const [head = '', tail = ''] = pieces;
    expect(pieces).toHaveLength(2);
    expect(head).toBe(whole.subarray(0, head.length).toString());
    expect(tail).toBe(whole.subarray(whole.length - tail.length).toString());
    expect(head.length + tail.length + missing).toBe(whole.length);
    expect(head.length).toBeGreaterThan(capBytes / 2 - 1_000);
    expect(tail.length).toBeGreaterThan(capBytes / 4);
    expect(logs.grownBytes).toBe(storedBytes());
  });

  test('that something was dropped is reported once, over restarts too', async () => {
    await sendAll();
    await logs.close();
    logs = capped();
    const end = await logs.size(task);
    expect(end).toBe(whole.length);
    for (let count = 0; count < 20; count += 1)
      await logs.append(task, end + count * 9_000, Buffer.alloc(9_000));
    expect(truncations).toEqual(['cap']);
  });

  test('the last lines are of what is kept', async () => {
    await sendAll();
    const size = await logs.size(task);
    const tail = async (lines: number) => whole.subarray(await logs.tailOffset(task, lines), size).toString();
    expect(await tail(2)).toBe('line 99998\nline 99999\n');
    const { pieces } = await readAll();
    expect(await tail(50_000), 'no more than there is').toBe(pieces[1]);
  });

  test('what its node has dropped is no gap to be filled', async () => {
    await logs.append(task, 0, bytes('begin'));
    expect(await logs.append(task, 1_000, bytes('end'), true)).toBe(1_003);
    expect(await logs.gapAt(task, 5)).toEqual({ to: 1_000, reason: 'node' });
    expect(truncations).toEqual(['node']);
  });
});

describe('output that is removed', () => {
  const other = { ...task, nodeRank: 1 };

  test('frees its space at once, and what comes goes on where it was', async () => {
    await logs.append(task, 0, bytes('hello'));
    await logs.append(other, 0, bytes('there'));
    expect(await logs.clear(task.jobId, 'removed')).toBe(10);
    expect([openFiles(), storedBytes(), logs.grownBytes]).toEqual([[], 0, 0]);
    expect(await logs.gapAt(task, 0)).toEqual({ to: 5, reason: 'removed' });
    expect(await logs.append(task, 0, bytes('hello world')), 'sent again in part').toBe(11);
    expect(Buffer.from(await logs.read(task, 5, 100)).toString()).toBe(' world');
    expect(await logs.clear(task.jobId, 'budget'), 'again').toBe(6);
    expect(await logs.clear(task.jobId, 'budget'), 'nothing is left').toBe(0);
  });

  test('looking for removed files does not disturb a task whose output goes to its next file', async () => {
    const capped = new LogStore(directory, { capBytes: 64 });
    const looking = Array.from({ length: 50 }, async (_, index) => {
      const written = capped.append(task, index * 32, bytes('x'.repeat(32)));
      // At each stage of it: a file is closed while the next one is already there.
      for (let turn = 0; turn < 20; turn += 1) {
        await capped.dropRemoved();
        await new Promise((resolve) => setImmediate(resolve));
      }
      return written;
    });
    expect((await Promise.all(looking)).at(-1)).toBe(1_600);
    await capped.close();
  });

  test('by hand while it is written is let go of, and goes on where it was', async () => {
    await logs.append(task, 0, bytes('hello'));
    rmSync(join(directory, task.jobId), { recursive: true });
    expect(openFiles()).toEqual([expect.stringContaining('(deleted)')]);
    await logs.dropRemoved();
    expect(openFiles()).toEqual([]);
    expect(await logs.append(task, 5, bytes(' world'))).toBe(11);
    expect(await logs.gapAt(task, 0)).toEqual({ to: 5, reason: 'removed' });
  });

  test('with its job leaves nothing', async () => {
    await logs.append(task, 0, bytes('hello'));
    expect(await logs.remove(task.jobId)).toBe(5);
    expect([readdirSync(directory), openFiles()]).toEqual([[], []]);
  });
});
