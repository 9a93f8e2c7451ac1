import type { RowUpload__Output } from '@muster/common/gen/muster/v1/RowUpload';
import { type TaskRef, taskKey } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import type { TrainingRow } from '@muster/common/training';
import { taskRefFromWire } from '@muster/common/wire/codec';
import { expect, onTestFinished, test, vi } from 'vitest';
import { TestHub } from '../hubFixture.ts';
import { aTask } from '../tasks/managerFixture.ts';
import { RowUploader, type RowUploaderParts } from './rowUploader.ts';

const other: TaskRef = { ...aTask, nodeRank: 1 };
const row = (position: number): TrainingRow => ({
  position,
  atMs: 1_700_000_000_000,
  values: { train_loss: position },
  lossNotFinite: false,
});

/** A coordinator that keeps rows by task, and an uploader that sends them to it. */
async function uploading(change: Partial<RowUploaderParts> = {}) {
  const hub = await TestHub.start();
  const stored = new Map<string, number[]>();
  const uploads: RowUpload__Output[] = [];
  const warnings: string[] = [];
  /** Milliseconds to wait, asked for of the next uploads with rows. */
  const refusals: number[] = [];
  hub.onRows = (upload, call) => {
    uploads.push(upload);
    const task = taskRefFromWire(upload.task);
    const key = task === null ? '' : taskKey(task);
    const rows = stored.get(key) ?? [];
    stored.set(key, rows);
    const retryAfterMs = upload.rows.length === 0 ? 0 : (refusals.shift() ?? 0);
    if (retryAfterMs === 0) {
      for (const { position } of upload.rows) if (position > (rows.at(-1) ?? 0)) rows.push(position);
    }
    const { complete } = upload;
    call.write({ task: upload.task, position: rows.at(-1) ?? 0, complete, retryAfterMs });
  };
  const client = hub.client();
  const uploader = new RowUploader({
    openStream: () => client.UploadRows(),
    log: { ...silentLogger, warn: (_fields, message) => warnings.push(message) },
    chance: () => 0,
    monotonicMs: () => performance.now(),
    ...change,
  });
  onTestFinished(() => uploader.close());
  return { hub, uploader, uploads, warnings, refusals, rowsOf: (task = aTask) => stored.get(taskKey(task)) };
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

test('rows of several tasks arrive once, in order and in batches, and the end of each is reported', async () => {
  const { uploader, uploads, rowsOf } = await uploading();
  for (const position of range(1, 2_001)) uploader.add(aTask, row(position));
  uploader.add(other, row(7));
  const done: string[] = [];
  uploader.whenComplete(aTask, () => done.push('first'));
  uploader.whenComplete(other, () => done.push('other'));
  uploader.ended(aTask, { isReported: false, isLost: false });
  await vi.waitFor(() => expect(done).toEqual(['first']));
  expect(rowsOf()).toEqual(range(1, 2_001));
  expect(Math.max(...uploads.map(({ rows }) => rows.length))).toBe(512);
  await vi.waitFor(() => expect(rowsOf(other)).toEqual([7]));
  uploader.ended(other, { isReported: false, isLost: false });
  await vi.waitFor(() => expect(done).toEqual(['first', 'other']));
  uploader.whenComplete(aTask, () => done.push('at once'));
  expect(done.at(-1)).toBe('at once');
});

test('a task without rows whose report says so waits for nothing', async () => {
  const { uploader, uploads } = await uploading();
  let isDone = false;
  uploader.ended(aTask, { isReported: true, isLost: false });
  uploader.whenComplete(aTask, () => (isDone = true));
  expect([isDone, uploads]).toEqual([true, []]);
});

test.each([false, true])(
  'the end of a task without rows is sent when the report of its end lacks it, lost or not: %s',
  async (isLost) => {
    const { uploader, uploads } = await uploading();
    const done = new Promise<void>((resolve) => {
      uploader.ended(aTask, { isReported: false, isLost });
      uploader.whenComplete(aTask, resolve);
    });
    await done;
    expect(uploads.map(({ complete, lost }) => [complete, lost])).toEqual([
      [false, false],
      [true, isLost],
    ]);
  },
);

test('a coordinator that comes back is asked how far it has them', async () => {
  const { hub, uploader, uploads, rowsOf } = await uploading();
  for (const position of range(1, 11)) uploader.add(aTask, row(position));
  await vi.waitFor(() => expect(rowsOf()).toEqual(range(1, 11)));
  hub.crash();
  for (const position of range(11, 21)) uploader.add(aTask, row(position));
  // As after a power cut: it has lost some, which are no longer here either.
  rowsOf()?.splice(5);
  uploads.length = 0;
  await hub.serve();
  await vi.waitFor(() => expect(rowsOf()?.at(-1)).toBe(20));
  expect(uploads[0]?.rows).toEqual([]);
});

test('what the coordinator does not take now is sent again', async () => {
  const { uploader, refusals, rowsOf } = await uploading();
  refusals.push(20, 20);
  for (const position of range(1, 4)) uploader.add(aTask, row(position));
  await vi.waitFor(() => expect(rowsOf()).toEqual([1, 2, 3]));
  expect(refusals).toEqual([]);
});

test('what waits is bounded: of the older rows every second one goes, and that is reported once', async () => {
  const { hub, uploader, warnings, rowsOf } = await uploading({ waitingMax: 100 });
  hub.crash();
  for (const position of range(1, 401)) uploader.add(aTask, row(position));
  await hub.serve();
  await vi.waitFor(() => expect(rowsOf()?.at(-1)).toBe(400));
  expect(rowsOf()?.length).toBeLessThanOrEqual(100);
  expect(rowsOf()?.slice(-20)).toEqual(range(381, 401));
  expect(warnings.filter((each) => each.includes('dropped'))).toHaveLength(1);
});
