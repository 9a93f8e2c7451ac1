import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TaskRef, taskKey } from '@muster/common/ids';
import { describe, expect, test, vi } from 'vitest';
import { aTask } from '../tasks/managerFixture.ts';
import { untouched, writeOutputRecord } from './outputRecord.ts';
import { bytes, uploading } from './uploaderFixture.ts';

const key = taskKey(aTask);
const other: TaskRef = { ...aTask, nodeRank: 1 };

function expectSame(actual: Buffer, expected: Buffer): void {
  expect(actual.length).toBe(expected.length);
  expect(actual.equals(expected)).toBe(true);
}

describe('the output of one task', () => {
  test('arrives whole, while it grows and to its end', async () => {
    const { uploader, logs, complete, file } = await uploading();
    const path = file('');
    uploader.follow(aTask, path, null);
    const content = bytes(1_000_000);
    for (let start = 0; start < content.length; start += 100_000) {
      appendFileSync(path, content.subarray(start, start + 100_000));
      await vi.waitFor(() => expect(logs.of(aTask).length).toBe(start + 100_000));
    }
    expect(complete).toEqual([]);
    uploader.follow(aTask, path, content.length);
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expectSame(logs.of(aTask), content);
  });

  test('may begin before its file is there', async () => {
    const { uploader, logs, directory } = await uploading();
    const path = join(directory, 'later.log');
    uploader.follow(aTask, path, null);
    writeFileSync(path, 'hello');
    await vi.waitFor(() => expect(logs.of(aTask).toString()).toBe('hello'));
  });

  test('arrives though it begins after another one was complete', async () => {
    const { uploader, logs, complete, file } = await uploading();
    uploader.follow(other, file('first'), 5);
    await vi.waitFor(() => expect(complete).toEqual([taskKey(other)]));
    // The agent forgets a task only by order of the coordinator, which can take a while.
    uploader.follow(aTask, file('second'), null);
    await vi.waitFor(() => expect(logs.of(aTask).toString()).toBe('second'));
  });

  test('is complete only once the coordinator says so', async () => {
    const { uploader, logs, complete, file } = await uploading();
    logs.holdAcks = true;
    uploader.follow(aTask, file('all'), 3);
    await vi.waitFor(() => expect(logs.completed.has(key)).toBe(true));
    expect(complete).toEqual([]);
    logs.releaseAcks();
    await vi.waitFor(() => expect(complete).toEqual([key]));
  });

  test('is asked about again when all of it arrived and was not safe yet', async () => {
    const { uploader, logs, complete, file } = await uploading();
    let isFirst = true;
    logs.hub.onUpload = (upload, call) => {
      const ack = logs.store(upload);
      call.write({ ...ack, complete: !isFirst });
      isFirst = false;
    };
    uploader.follow(aTask, file('all'), 3);
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expect(logs.of(aTask).toString()).toBe('all');
  });

  test('goes on from what the coordinator has, when the agent was restarted', async () => {
    const { uploader, logs, complete, file } = await uploading();
    const content = bytes(8_000_000);
    logs.put(aTask, content.subarray(0, 7_000_001));
    uploader.follow(aTask, file(content), content.length);
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expectSame(logs.of(aTask), content);
    const sent = logs.pieces.reduce((sum, { data }) => sum + data.length, 0);
    expect(sent).toBeLessThan(3_000_000);
  });

  test.each([0, 100_000, 1_500_000, 2_999_999])(
    'is sent again from byte %i when the coordinator has lost the rest',
    async (left) => {
      const { uploader, logs, complete, file } = await uploading();
      const content = bytes(3_000_000);
      const path = file(content);
      uploader.follow(aTask, path, null);
      await vi.waitFor(() => expect(logs.of(aTask).length).toBe(content.length));
      logs.hub.crash();
      logs.cut(aTask, left);
      await logs.hub.serve();
      uploader.follow(aTask, path, content.length);
      await vi.waitFor(() => expect(complete).toEqual([key]));
      expectSame(logs.of(aTask), content);
    },
  );

  test('is not sent without end to a coordinator that acknowledges nothing', async () => {
    const { uploader, logs, complete, file } = await uploading();
    logs.holdAcks = true;
    const content = bytes(6_000_000);
    uploader.follow(aTask, file(content), content.length);
    await vi.waitFor(() => expect(logs.of(aTask).length).toBe(1024 * 1024));
    // The output of another task still arrives, and shows that nothing else was sent before it.
    uploader.follow(other, file('small'), 5);
    await vi.waitFor(() => expect(logs.of(other).toString()).toBe('small'));
    expect(logs.of(aTask).length).toBe(1024 * 1024);
    logs.releaseAcks();
    await vi.waitFor(() => expect(complete).toHaveLength(2));
    expectSame(logs.of(aTask), content);
  });
});

describe('a connection that breaks', () => {
  const content = bytes(700_000);
  const pieceCount = 6;

  describe.each(['before', 'after'] as const)('%s a piece is stored', (when) => {
    test.each(Array.from({ length: pieceCount }, (_, index) => index + 1))(
      'the %ith: nothing is lost or doubled',
      async (number) => {
        const { uploader, logs, complete, file } = await uploading();
        logs.hub.onUpload = (upload, call) => {
          const isLast = logs.pieces.length + 1 === number;
          if (!isLast) {
            logs.take(upload, call);
            return;
          }
          if (when === 'after') logs.store(upload);
          logs.pieces.push(upload);
          call.emit('error', { code: 14, details: 'gone' });
          logs.hub.onUpload = (next, nextCall) => nextCall !== call && logs.take(next, nextCall);
        };
        uploader.follow(aTask, file(content), content.length);
        await vi.waitFor(() => expect(complete).toEqual([key]));
        expectSame(logs.of(aTask), content);
      },
    );
  });

  test('while only the last word is missing is dialled again', async () => {
    const { uploader, logs, complete, file } = await uploading();
    logs.holdAcks = true;
    uploader.follow(aTask, file('all'), 3);
    await vi.waitFor(() => expect(logs.completed.has(key)).toBe(true));
    logs.hub.crash();
    logs.holdAcks = false;
    await logs.hub.serve();
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expect(logs.of(aTask).toString()).toBe('all');
  });

  test('is reported once, however long it takes', async () => {
    const { uploader, logs, complete, logged, file } = await uploading();
    logs.hub.crash();
    let tries = 0;
    uploader.follow(aTask, file('all'), 3);
    await vi.waitFor(() => expect(logged).toHaveLength(1));
    await logs.hub.serve();
    logs.hub.onUpload = (upload, call) => {
      tries += 1;
      if (tries < 3) call.emit('error', { code: 14, details: 'not yet' });
      else logs.take(upload, call);
    };
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expect(logged).toEqual(['output cannot be uploaded now; it stays here until it can']);
  });
});

describe('tasks beside each other', () => {
  test('a small output does not wait for a large one', async () => {
    const { uploader, logs, complete, file } = await uploading();
    const large = file('');
    truncateSync(large, 100_000_000);
    uploader.follow(aTask, large, 100_000_000);
    await vi.waitFor(() => expect(logs.pieces.length).toBeGreaterThan(0));
    uploader.follow(other, file('small'), 5);
    await vi.waitFor(() => expect(complete).toContain(taskKey(other)));
    expect(logs.of(aTask).length).toBeLessThan(50_000_000);
    uploader.forget(aTask);
  });

  test('one that cannot be read does not hold up the others', async () => {
    const { uploader, logs, complete, logged, file, directory } = await uploading();
    // No name of a file is that long: an error of the system for every user, root included.
    uploader.follow(aTask, join(directory, 'x'.repeat(300)), 5);
    const content = bytes(500_000);
    uploader.follow(other, file(content), content.length);
    await vi.waitFor(() => expect(complete).toEqual([taskKey(other)]));
    expectSame(logs.of(other), content);
    expect(logged).toEqual(['the output of a task cannot be read']);
  });

  test('one that is forgotten while it is sent ends there', async () => {
    const { uploader, logs, complete, file } = await uploading();
    const content = bytes(5_000_000);
    uploader.follow(aTask, file(content), content.length);
    uploader.follow(other, file(content), content.length);
    uploader.forget(aTask);
    await vi.waitFor(() => expect(complete).toEqual([taskKey(other)]));
    expectSame(logs.of(other), content);
  });
});

describe('a file that the task has meddled with', () => {
  test('is complete where it was cut', async () => {
    const { uploader, logs, complete, logged, file } = await uploading();
    uploader.follow(aTask, file('all'), 5_000);
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expect(logs.of(aTask).toString()).toBe('all');
    expect(logged).toEqual(['the rest of the output of a task was removed before it could be uploaded']);
  });

  test('is complete without it when it was removed', async () => {
    const { uploader, complete, directory } = await uploading();
    uploader.follow(aTask, join(directory, 'nowhere'), 5_000);
    await vi.waitFor(() => expect(complete).toEqual([key]));
  });

  test('is read to its end when it is removed while it is read', async () => {
    const { uploader, logs, complete, file } = await uploading();
    const content = bytes(3_000_000);
    const path = file(content);
    logs.holdAcks = true;
    uploader.follow(aTask, path, null);
    await vi.waitFor(() => expect(logs.of(aTask).length).toBeGreaterThan(0));
    rmSync(path);
    uploader.follow(aTask, path, content.length);
    logs.releaseAcks();
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expectSame(logs.of(aTask), content);
  });

  test('is not read through a link, and a named pipe in its place blocks nobody', async () => {
    const { uploader, logs, complete, file, directory } = await uploading();
    const link = join(directory, 'link');
    symlinkSync(file('of somebody else'), link);
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    uploader.follow(aTask, link, 16);
    uploader.follow(other, pipe, 16);
    await vi.waitFor(() => expect([...complete].sort()).toEqual([key, taskKey(other)]));
    expect(logs.of(aTask).length + logs.of(other).length).toBe(0);
  });
});

describe('a coordinator that cannot take all', () => {
  test('makes the task wait that it names, and no other', async () => {
    const { uploader, logs, complete, file } = await uploading();
    let refusals = 0;
    logs.hub.onUpload = (upload, call) => {
      expect(upload.waits).toBe(true);
      const isOther = upload.task?.nodeRank === other.nodeRank;
      // Nothing of the first is taken until the other is there.
      if (isOther || logs.completed.has(taskKey(other))) {
        logs.take(upload, call);
        return;
      }
      refusals += 1;
      call.write({ task: upload.task, nextOffset: 0, complete: false, retryAfterMs: 50 });
    };
    const content = bytes(2_000_000);
    uploader.follow(aTask, file(content), content.length);
    await vi.waitFor(() => expect(refusals).toBeGreaterThan(10));
    uploader.follow(other, file('small'), 5);
    await vi.waitFor(() => expect(complete).toEqual([taskKey(other), key]));
    expectSame(logs.of(aTask), content);
  });

  test('is spared what it would not keep', async () => {
    const { uploader, logs, complete, file } = await uploading();
    const content = bytes(8_000_000);
    const taken: [offset: number, followsGap: boolean][] = [];
    logs.hub.onUpload = (upload, call) => {
      const { task, offset, data, complete: isLast, followsGap } = upload;
      taken.push([offset, followsGap]);
      const ack = { task, nextOffset: offset + data.length, complete: isLast };
      call.write({ ...ack, tailBytes: 1_000_000 });
    };
    uploader.follow(aTask, file(content), content.length);
    await vi.waitFor(() => expect(complete).toEqual([key]));
    const after = taken.filter(([, followsGap]) => followsGap);
    expect(after).toEqual([[7_000_000, true]]);
    expect(taken.length * 131_072).toBeLessThan(4_000_000);
  });
});

describe('output that its node has dropped', () => {
  test('is left out, and reported to be', async () => {
    const { uploader, logs, complete, file } = await uploading();
    const content = bytes(1_000_000);
    const path = file(content);
    writeOutputRecord(path, { ...untouched, dropped: { from: 200_000, to: 900_000 }, heldBack: true });
    const gaps: number[] = [];
    let sent = 0;
    logs.hub.onUpload = ({ task, offset, data, complete: isLast, followsGap, heldBack }, call) => {
      if (followsGap) gaps.push(offset);
      expect(heldBack).toBe(true);
      expect(content.subarray(offset, offset + data.length).equals(data)).toBe(true);
      sent += data.length;
      call.write({ task, nextOffset: offset + data.length, complete: isLast });
    };
    uploader.follow(aTask, path, content.length);
    await vi.waitFor(() => expect(complete).toEqual([key]));
    expect({ gaps, sent }).toEqual({ gaps: [900_000], sent: 300_000 });
  });
});
