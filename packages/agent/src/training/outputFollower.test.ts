import { appendFileSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { OutputFollower, outputSliceBytes } from './outputFollower.ts';

const mib = 1024 * 1024;

function follow() {
  const directory = mkdtempSync(join(tmpdir(), 'follower-'));
  const path = join(directory, 'output.log');
  const seen = { text: '', longest: 0, events: [] as string[] };
  const follower = new OutputFollower({
    path,
    onBytes: (bytes) => {
      seen.longest = Math.max(seen.longest, bytes.length);
      // Only of what is short: the others would fill the test's memory.
      if (seen.text.length < mib) seen.text += bytes.toString('latin1');
    },
    onSkipped: (bytes) => seen.events.push(`skipped ${bytes}`),
    onStartedOver: () => seen.events.push('started over'),
  });
  onTestFinished(() => {
    follower.close();
    rmSync(directory, { recursive: true });
  });
  const buffer = Buffer.alloc(outputSliceBytes);
  const readAll = async (backlogBytesMax = Number.POSITIVE_INFINITY) => {
    const size = await follower.size();
    let slices = 0;
    while ((await follower.readSlice(buffer, size, backlogBytesMax)) > 0) slices += 1;
    return slices;
  };
  return { path, directory, seen, follower, readAll };
}

test('it reads what was written since, and nothing while there is no file', async () => {
  const { path, seen, readAll } = follow();
  expect(await readAll()).toBe(0);
  writeFileSync(path, 'one');
  await readAll();
  appendFileSync(path, ' two');
  await readAll();
  expect(await readAll()).toBe(0);
  expect(seen.text).toBe('one two');
});

test('a line of 50 MB is read in slices', async () => {
  const { path, seen, readAll } = follow();
  writeFileSync(path, Buffer.alloc(50 * mib, 'x'));
  expect(await readAll()).toBe((50 * mib) / outputSliceBytes);
  expect(seen.longest).toBe(outputSliceBytes);
  expect(seen.events).toEqual([]);
});

test('of more than may be left to read, the beginning and the end are read', async () => {
  const { path, seen, readAll } = follow();
  writeFileSync(path, Buffer.concat([Buffer.from('begin'), Buffer.alloc(10 * mib), Buffer.from('the end')]));
  const slices = await readAll(2 * mib);
  expect(slices).toBeLessThanOrEqual((3 * mib) / outputSliceBytes + 1);
  expect(seen.events).toEqual([`skipped ${7 * mib + 12}`]);
  expect(seen.text.startsWith('begin')).toBe(true);
});

test('an output that was emptied is read from its new beginning', async () => {
  const { path, seen, readAll } = follow();
  writeFileSync(path, 'a long first one');
  await readAll();
  truncateSync(path);
  await readAll();
  appendFileSync(path, 'new');
  await readAll();
  expect(seen).toMatchObject({ text: 'a long first onenew', events: ['started over'] });
});

test('what a task puts in the place of its output is not followed', async () => {
  const { path, directory, seen, readAll } = follow();
  writeFileSync(join(directory, 'secret'), 'secret');
  symlinkSync(join(directory, 'secret'), path);
  expect(await readAll()).toBe(0);
  expect(seen.text).toBe('');
});

test('after it was closed it opens nothing again', async () => {
  const { path, seen, follower, readAll } = follow();
  writeFileSync(path, 'one');
  follower.close();
  expect(await readAll()).toBe(0);
  expect(seen.text).toBe('');
});
