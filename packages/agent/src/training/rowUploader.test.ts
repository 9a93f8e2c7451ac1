import type { ReceivedRows } from '@muster/common/gen/muster/v1/ReceivedRows';
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

interface Uploading extends Partial<RowUploaderParts> {
  /** The coordinator takes no more rows than these within a second, and reports it. */
  readonly rowsPerSecond?: number;
}

/** A coordinator that keeps rows by task, and an uploader that sends them to it. */
async function uploading({ rowsPerSecond = Number.POSITIVE_INFINITY, ...change }: Uploading = {}) {
  const hub = await TestHub.start();
  const stored = new Map<string, number[]>();
  const uploads: RowUpload__Output[] = [];
  const warnings: string[] = [];
  /** Milliseconds to wait, asked for of the next uploads with rows. */
  const refusals: number[] = [];
  const received = new Map<string, ReceivedRows>();
  let left = rowsPerSecond;
  const refill = setInterval(() => (left = rowsPerSecond), 1_000);
  onTestFinished(() => clearInterval(refill));
  hub.onRows = (upload, call) => {
    uploads.push(upload);
    const task = taskRefFromWire(upload.task);
    const key = task === null ? '' : taskKey(task);
    const rows = stored.get(key) ?? [];
    stored.set(key, rows);
    const tooFast = upload.rows.length > left;
    const retryAfterMs = tooFast ? 100 : upload.rows.length === 0 ? 0 : (refusals.shift() ?? 0);
    if (retryAfterMs === 0) {
      left -= upload.rows.length;
      if (upload.printed.length > 0) received.set(key, upload);
      for (const { position } of upload.rows) if (position > (rows.at(-1) ?? 0)) rows.push(position);
    }
    const { complete } = upload;
    const known = received.get(key);
    call.write({
      task: upload.task,
      position: rows.at(-1) ?? 0,
      complete,
      retryAfterMs,
      tooFast,
      ...(retryAfterMs === 0
        ? { received: { printed: known?.printed ?? [], unreadBytes: known?.unreadBytes ?? 0 } }
        : {}),
    });
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
  const printedOf = (task = aTask) => received.get(taskKey(task))?.printed;
  const rowsOf = (task = aTask) => stored.get(taskKey(task));
  return { hub, uploader, uploads, warnings, refusals, rowsOf, printedOf };
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

test('what waits is bounded: older rows go, and that is reported once', async () => {
  const { hub, uploader, warnings, rowsOf } = await uploading({ waitingMax: 100 });
  hub.crash();
  for (const position of range(1, 401)) uploader.add(aTask, row(position));
  await hub.serve();
  await vi.waitFor(() => expect(rowsOf()?.at(-1)).toBe(400));
  expect(rowsOf()?.length).toBeLessThanOrEqual(100);
  expect(rowsOf()?.slice(-20)).toEqual(range(381, 401));
  expect(warnings.filter((each) => each.includes('dropped'))).toHaveLength(1);
});

test('rows that come faster than they are taken are dropped but for ends and extremes, and the newest arrives soon', async () => {
  const { uploader, rowsOf, printedOf } = await uploading({ rowsPerSecond: 1_000 });
  for (const position of range(1, 60_001)) {
    const special = position === 30_001 ? { values: {}, lossNotFinite: true } : {};
    uploader.add(aTask, { ...row(position), values: { train_loss: lossAt(position) }, ...special });
  }
  uploader.ended(aTask, { isReported: false, isLost: false });
  await new Promise<void>((resolve) => uploader.whenComplete(aTask, resolve));
  const arrived = rowsOf() ?? [];
  expect(arrived.length).toBeLessThan(5_000);
  for (const position of [1, 30_000, 30_001, 30_002, 60_000]) expect(arrived).toContain(position);
  expect(printedOf()).toMatchObject([{ metric: 'train_loss', rows: 60_000, notFinite: 1 }]);
});

function lossAt(position: number): number {
  if (position === 30_000) return 0.01;
  return position === 30_002 ? 99 : 1 + (position % 10) / 100;
}

test('rows that the coordinator has are not sent again by an agent that reads the output again', async () => {
  const { hub, uploader, uploads, rowsOf } = await uploading();
  for (const position of range(1, 2_001)) uploader.add(aTask, row(position));
  await vi.waitFor(() => expect(rowsOf()).toHaveLength(2_000));
  uploads.length = 0;
  const client = hub.client();
  const again = new RowUploader({
    openStream: () => client.UploadRows(),
    log: silentLogger,
    chance: () => 0,
    monotonicMs: () => performance.now(),
  });
  onTestFinished(() => again.close());
  again.add(aTask, row(1));
  await vi.waitFor(() => expect(uploads).toHaveLength(1));
  for (const position of range(2, 2_003)) again.add(aTask, row(position));
  await vi.waitFor(() => expect(rowsOf()).toHaveLength(2_002));
  expect(uploads.reduce((sum, { rows }) => sum + rows.length, 0)).toBeLessThanOrEqual(3);
  expect(uploads.at(-1)?.printed).toMatchObject([{ rows: 2_002 }]);
});
