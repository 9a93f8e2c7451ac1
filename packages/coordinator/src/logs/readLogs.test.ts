import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { causeOf } from '@muster/common/cause';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CommitNotifier } from '../events/notices.ts';
import type { Attempt, Job, JobState } from '../model.ts';
import { aJob, anAttempt, anExit, aTask, jobIdOf, queuedState, someMs } from '../modelFixture.ts';
import { LogStore } from './logStore.ts';
import { type ReadLogsParts, type StreamLogsOptions, streamLogs } from './readLogs.ts';
import { readBytes } from './tail.ts';

let directory: string;
let logs: LogStore;
let job: Job;
let attempts: readonly Attempt[];
let notifier: CommitNotifier;
/** How long nodes have been silent, by name. */
let silent: Map<string, number | null>;
const abort = { controller: new AbortController() };

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-logs-'));
  logs = new LogStore(directory);
  notifier = new CommitNotifier();
  silent = new Map();
  abort.controller = new AbortController();
  become(queuedState(), []);
});
afterEach(async () => {
  abort.controller.abort();
  await logs.close();
  rmSync(directory, { recursive: true });
});

/** The job changes, and its watchers are notified. */
function become(state: JobState, history: readonly Attempt[]): void {
  job = aJob(1, { state, lastAttempt: history.length });
  attempts = history;
  notifier.notify([job.id]);
}

function running(number: number, ranks = 1): Attempt {
  const tasks = Array.from({ length: ranks }, (_, rank) => aTask(rank, { state: 'running' }));
  return anAttempt(number, { state: 'running', tasks });
}

/** @param sizes of each rank's output */
function ended(number: number, ...sizes: number[]): Attempt {
  const tasks = sizes.map((logBytes, rank) => aTask(rank, { state: 'ended', exit: anExit({ logBytes }) }));
  return anAttempt(number, { state: 'ended', tasks, endedAtMs: someMs });
}

function write(attempt: number, nodeRank: number, offset: number, text: string): Promise<number> {
  return logs.append({ jobId: jobIdOf(1), attempt, nodeRank }, offset, Buffer.from(text));
}

function fallSilent(node: string, silentForMs: number | null = 4_000): void {
  silent.set(node, silentForMs);
  notifier.notify([node]);
}

/** What a reader is shown, as `attempt.rank: text`; `.` where a rank is complete, `?` with what is missing. */
function reading(options: Partial<StreamLogsOptions> = {}, given: Partial<ReadLogsParts> = {}) {
  const shown: string[] = [];
  const parts = {
    logs,
    readJob: async () => ({ job, attempts }),
    changed: (subject: string, signal: AbortSignal) => notifier.next(signal, subject),
    silence: (node: string) => {
      const silentForMs = silent.get(node);
      return silentForMs === undefined ? null : { silentForMs };
    },
    ...given,
  };
  const all = {
    jobId: job.id,
    attempt: null,
    nodeRank: null,
    follow: false,
    tailLines: null,
    from: [],
    ...options,
  };
  const done = (async () => {
    for await (const piece of streamLogs(parts, all, abort.controller.signal)) {
      const { missing } = piece;
      const text = piece.complete ? '.' : Buffer.from(piece.data).toString();
      if (missing !== null) {
        shown.push(
          `${piece.attempt}.${piece.nodeRank}? ${missing.bytes} of ${missing.node} (${missing.silentForMs})`,
        );
        continue;
      }
      shown.push(`${piece.attempt}.${piece.nodeRank}: ${text}`);
    }
    return shown;
  })();
  return { shown, done };
}

const succeeded: JobState = { kind: 'succeeded', endedAtMs: someMs };

test('an ended job is shown whole, each rank to its end', async () => {
  await write(1, 0, 0, 'a');
  await write(1, 1, 0, 'bb');
  become(succeeded, [ended(1, 1, 2)]);
  expect(await reading().done).toEqual(['1.0: a', '1.1: bb', '1.0: .', '1.1: .']);
  expect(await reading({ nodeRank: 1 }).done).toEqual(['1.1: bb', '1.1: .']);
});

test('without following, what is there is shown and nothing is waited for', async () => {
  expect(await reading().done).toEqual([]);
  await write(1, 0, 0, 'a');
  become({ kind: 'running', attempt: running(1) }, [running(1)]);
  expect(await reading().done).toEqual(['1.0: a']);
  become({ kind: 'running', attempt: running(2) }, [ended(1, 1), running(2)]);
  expect(await reading().done, 'the newest attempt only').toEqual([]);
  expect(await reading({ attempt: 1 }).done).toEqual(['1.0: a', '1.0: .']);
});

test('a task without output is complete at its end', async () => {
  become(succeeded, [ended(1, 0)]);
  expect(await reading({ follow: true }).done).toEqual(['1.0: .']);
});

test('a follower of a queued job sees its first attempt from the first byte, tail or not', async () => {
  const { shown, done } = reading({ follow: true, tailLines: 1 });
  await write(1, 0, 0, 'one\ntwo\n');
  become({ kind: 'running', attempt: running(1) }, [running(1)]);
  await vi.waitFor(() => expect(shown).toEqual(['1.0: one\ntwo\n']));
  await write(1, 0, 8, 'three\n');
  await vi.waitFor(() => expect(shown.at(-1)).toBe('1.0: three\n'));
  become(succeeded, [ended(1, 14)]);
  expect((await done).at(-1)).toBe('1.0: .');
});

test('a follower of a queued job that is cancelled is let go', async () => {
  const { done } = reading({ follow: true });
  become({ kind: 'cancelled', endedAtMs: someMs, cause: causeOf('cancelled', 'stopped') }, []);
  expect(await done).toEqual([]);
});

test('attempts that came and went before the first look at them are shown as well', async () => {
  const { done } = reading({ follow: true });
  await write(1, 0, 0, 'a');
  await write(2, 0, 0, 'b');
  become(succeeded, [ended(1, 1), ended(2, 1)]);
  expect(await done).toEqual(['1.0: a', '1.0: .', '2.0: b', '2.0: .']);
});

test('the end of a job is waited for until its last output has arrived', async () => {
  become(succeeded, [ended(1, 3)]);
  const { shown, done } = reading({ follow: true });
  await write(1, 0, 0, 'ab');
  await vi.waitFor(() => expect(shown).toEqual(['1.0: ab']));
  await write(1, 0, 2, 'c');
  expect(await done).toEqual(['1.0: ab', '1.0: c', '1.0: .']);
});

test('what a node owes when the job has ended is not waited for once the node is silent', async () => {
  await write(1, 0, 0, 'a');
  await write(1, 1, 0, 'b');
  become(succeeded, [ended(1, 1, 3)]);
  const { shown, done } = reading({ follow: true });
  await vi.waitFor(() => expect(shown).toEqual(['1.0: a', '1.1: b', '1.0: .']));
  fallSilent('node-1');
  await write(1, 1, 1, 'c');
  await vi.waitFor(() => expect(shown.at(-1)).toBe('1.1: c'));
  fallSilent('node-2');
  expect((await done).at(-1)).toBe('1.1? 1 of node-2 (4000)');
  silent.set('node-2', null);
  expect(await reading({ follow: true }).done, 'silent from the first look').toEqual([
    '1.0: a',
    '1.1: bc',
    '1.0: .',
    '1.1? 1 of node-2 (null)',
  ]);
});

test('a silent node ends no reading of a job that may still run, and what it owes is reported at the end', async () => {
  await write(2, 0, 0, 'b');
  become({ kind: 'running', attempt: running(2) }, [ended(1, 5), running(2)]);
  fallSilent('node-1');
  const { shown, done } = reading({ follow: true });
  await vi.waitFor(() => expect(shown).toEqual(['2.0: b']));
  fallSilent('node-1');
  become(succeeded, [ended(1, 5), ended(2, 1)]);
  expect(await done).toEqual(['2.0: b', '2.0: .']);
  expect(await reading({ attempt: 1, follow: true }).done, 'of one attempt, when that has ended').toEqual([
    '1.0? 5 of node-1 (4000)',
  ]);
});

test('without following, what is missing is reported as well, while its node is silent', async () => {
  become(succeeded, [ended(1, 3)]);
  expect(await reading().done).toEqual([]);
  fallSilent('node-1');
  expect(await reading().done).toEqual(['1.0? 3 of node-1 (4000)']);
});

test('an attempt whose output does not arrive does not hide the next one, and is not lost when it does', async () => {
  become({ kind: 'running', attempt: running(1) }, [running(1)]);
  const { shown, done } = reading({ follow: true });
  await write(2, 0, 0, 'second');
  become({ kind: 'running', attempt: running(2) }, [ended(1, 5), running(2)]);
  await vi.waitFor(() => expect(shown).toEqual(['2.0: second']));
  await write(1, 0, 0, 'first');
  await vi.waitFor(() => expect(shown.slice(1)).toEqual(['1.0: first', '1.0: .']));
  become(succeeded, [ended(1, 5), ended(2, 6)]);
  expect((await done).at(-1)).toBe('2.0: .');
});

test('the tail is of what was there at first', async () => {
  await write(1, 0, 0, 'one\ntwo\n');
  become({ kind: 'running', attempt: running(1) }, [running(1)]);
  const { shown, done } = reading({ follow: true, tailLines: 1 });
  await vi.waitFor(() => expect(shown).toEqual(['1.0: two\n']));
  await write(2, 0, 0, 'three\nfour\n');
  become(succeeded, [ended(1, 8), ended(2, 11)]);
  expect(await done).toEqual(['1.0: two\n', '1.0: .', '2.0: three\nfour\n', '2.0: .']);
});

test('following one attempt ends with it, while the job goes on', async () => {
  await write(1, 0, 0, 'a');
  become({ kind: 'running', attempt: running(2) }, [ended(1, 1), running(2)]);
  expect(await reading({ attempt: 1, follow: true }).done).toEqual(['1.0: a', '1.0: .']);
  expect(await reading({ attempt: 7, follow: true }).done).toEqual([]);
});

test('a reader that goes away is let go, wherever it waits', async () => {
  become({ kind: 'running', attempt: running(1) }, [running(1)]);
  const { done } = reading({ follow: true });
  await new Promise((resolve) => setImmediate(resolve));
  abort.controller.abort();
  expect(await done).toEqual([]);
});

test('positions of ranks and attempts that are not shown keep no reader busy', async () => {
  await write(1, 0, 0, 'a');
  await write(1, 1, 0, 'b');
  await write(2, 0, 0, 'c');
  become({ kind: 'running', attempt: running(2) }, [ended(1, 1, 1), running(2)]);
  const from = [{ attempt: 1, nodeRank: 1, offset: 0 }];
  const looksMax = 100;
  for (const [options, expected] of [
    [{ nodeRank: 0 }, ['1.0: a', '1.0: .', '2.0: c']],
    [{ attempt: 2 }, ['2.0: c']],
  ] as const) {
    abort.controller = new AbortController();
    const { controller } = abort;
    let looks = 0;
    const readJob = () => {
      looks += 1;
      // A reader that never waits would not let the test end.
      if (looks > looksMax) controller.abort();
      return Promise.resolve({ job, attempts });
    };
    const { shown, done } = reading({ ...options, follow: true, from }, { readJob });
    await vi.waitFor(() => expect(shown).toEqual(expected));
    controller.abort();
    await done;
    expect(looks).toBeLessThan(looksMax);
  }
});

test('no append is slept through, whenever it comes', async () => {
  become({ kind: 'running', attempt: running(1) }, [running(1)]);
  const { shown, done } = reading({ follow: true });
  for (let count = 0; count < 200; count += 1) {
    await write(1, 0, count, 'x');
    if (count % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    if (count % 20 === 0)
      await vi.waitFor(() => expect(shown.map((each) => each.slice(5)).join('')).toHaveLength(count + 1));
  }
  become(succeeded, [ended(1, 200)]);
  expect((await done).map((each) => each.slice(5)).join('')).toBe(`${'x'.repeat(200)}.`);
});

test('where output is missing a line says how much and why, and what follows joins', async () => {
  await write(1, 0, 0, 'begin\n');
  await logs.append({ jobId: job.id, attempt: 1, nodeRank: 0 }, 5_000, Buffer.from('end\n'), true);
  become(succeeded, [ended(1, 5_004)]);
  const marker = '\n[muster] 4994 bytes of output were dropped: more than its node keeps of one task\n';
  expect(await reading().done).toEqual(['1.0: begin\n', `1.0: ${marker}`, '1.0: end\n', '1.0: .']);
});

test('an output that was removed is reported as such, also where only its last lines are asked for', async () => {
  await write(1, 0, 0, 'x'.repeat(1_000));
  await logs.clear(job.id, 'budget');
  become(succeeded, [ended(1, 1_000)]);
  const notice = '1.0: [muster] 1000 bytes of output were removed: the budget of logs is used up\n';
  expect(await reading().done).toEqual([notice, '1.0: .']);
  expect(await reading({ tailLines: 5 }).done).toEqual([notice, '1.0: .']);
});

describe('output that is removed while it is read', () => {
  const bytes = 20 * readBytes;
  /** A reader that has read the beginning, and the rest of its reading. */
  async function begun(options: Partial<StreamLogsOptions> = {}) {
    const text = 'x'.repeat(readBytes);
    for (let at = 0; at < bytes; at += readBytes) await write(1, 0, at, text);
    become(succeeded, [ended(1, bytes)]);
    const all = { attempt: null, nodeRank: null, follow: false, tailLines: null, from: [], ...options };
    const parts = {
      logs,
      readJob: async () => (isKept ? { job, attempts } : null),
      changed: (subject: string, signal: AbortSignal) => notifier.next(signal, subject),
      silence: () => null,
    };
    let isKept = true;
    const pieces = streamLogs(parts, { ...all, jobId: job.id }, abort.controller.signal);
    await pieces.next();
    const rest = async () => {
      let read = readBytes;
      for await (const { data } of pieces) read += data.length;
      return read;
    };
    return { rest, forgetJob: () => (isKept = false) };
  }

  test.each([false, true])('ends the reading with where it ends, following or not: %s', async (follow) => {
    const { rest } = await begun({ follow });
    await logs.clear(job.id, 'removed');
    const gone = bytes - readBytes;
    await expect(rest()).rejects.toMatchObject({
      code: 'not_found',
      message: `output of ${job.id} was removed while it was read: ${gone} bytes of attempt 1, rank 0 from byte ${readBytes} on are gone`,
    });
  });

  test('by the budget is said so', async () => {
    const { rest } = await begun();
    await logs.clear(job.id, 'budget');
    await expect(rest()).rejects.toThrow(/while it was read, because the budget of logs is used up: /);
  });

  test('with all files of its job, and with the job itself, ends it as well', async () => {
    const reader = await begun();
    await logs.remove(job.id);
    await expect(reader.rest()).rejects.toThrow(`from byte ${readBytes} on are gone`);
    const other = await begun({ follow: true });
    await logs.remove(job.id);
    other.forgetJob();
    await expect(other.rest()).rejects.toThrow(/was removed while its output was read|are gone/);
  });

  test('is an error too for a reader that comes back to where it was', async () => {
    await write(1, 0, 0, 'x'.repeat(1_000));
    await logs.clear(job.id, 'removed');
    become(succeeded, [ended(1, 1_000)]);
    const from = [{ attempt: 1, nodeRank: 0, offset: 400 }];
    await expect(reading({ from }).done).rejects.toThrow(/600 bytes of attempt 1, rank 0 from byte 400 on/);
  });

  test('that a follower had read is no loss to it', async () => {
    await write(1, 0, 0, 'first');
    become({ kind: 'running', attempt: running(1) }, [running(1)]);
    const { shown, done } = reading({ follow: true });
    await vi.waitFor(() => expect(shown).toEqual(['1.0: first']));
    await logs.clear(job.id, 'removed');
    await write(1, 0, 5, 'second');
    become(succeeded, [ended(1, 11)]);
    expect(await done).toEqual(['1.0: first', '1.0: second', '1.0: .']);
  });

  test('at any moment is an error or a whole output, never a part of it', async () => {
    for (let round = 0; round < 40; round += 1) {
      await logs.remove(job.id);
      const { rest } = await begun();
      const read = rest().catch((error: unknown) => String(error));
      for (let wait = 0; wait < round % 13; wait += 1) await new Promise((resolve) => setImmediate(resolve));
      await (round % 2 === 0 ? logs.clear(job.id, 'removed') : logs.remove(job.id));
      const end = await read;
      if (end !== bytes) expect(end).toContain('are gone');
    }
  });
});
