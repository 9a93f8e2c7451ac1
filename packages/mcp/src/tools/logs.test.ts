import type { LogPiece } from '@muster/common/views';
import type { LogRequest } from '@muster/common/wire/client';
import { expect, test } from 'vitest';
import { aJob, fakeApi, openSession } from '../testing/session.ts';

const piece: LogPiece = {
  attempt: 1,
  nodeRank: 0,
  offset: 0,
  data: new Uint8Array(),
  complete: false,
  missing: null,
};

/** Answers with these pieces, and remembers what was asked for. */
function reads(pieces: readonly Partial<LogPiece>[]) {
  const requests: LogRequest[] = [];
  const api = fakeApi({
    getJob: () => Promise.resolve(aJob(1)),
    readLogs: async function* (request) {
      requests.push(request);
      for (const each of pieces) yield { ...piece, ...each };
    },
  });
  return { api, requests };
}

const text = (nodeRank: number, offset: number, data: string): Partial<LogPiece> => ({
  nodeRank,
  offset,
  data: Buffer.from(data),
});

test('what is new is read from where the answer before has ended, unfinished lines whole', async () => {
  const first = reads([text(0, 100, 'step 1\nstep'), text(1, 0, 'none'), text(0, 111, ' 2\nst')]);
  const { data } = await (await openSession(first.api)).call('workload_logs', { workloadId: 'x' });
  expect(data).toMatchObject({ nextSince: '1:0=114,1=0' });
  const then = reads([text(0, 114, 'step 3\n'), { nodeRank: 1, complete: true }]);
  const session = await openSession(then.api);
  const answer = await session.call('workload_logs', { workloadId: 'x', since: '1:0=114,1=0' });
  expect(then.requests[0]?.from).toEqual([
    { attempt: 1, nodeRank: 0, offset: 114 },
    { attempt: 1, nodeRank: 1, offset: 0 },
  ]);
  expect(answer.data).toMatchObject({ lines: [{ rank: 0, text: 'step 3' }], nextSince: '1:0=121,1=0' });
});

test('an answer without the first lines tells that there are more before them', async () => {
  for (const [offset, cut] of [
    [0, false],
    [400, true],
  ] as const) {
    const session = await openSession(
      reads([text(0, offset, 'step 9\n'), text(0, offset + 7, 'step 10\n')]).api,
    );
    const answer = await session.call('workload_logs', { workloadId: 'x' });
    expect(answer.data).toMatchObject({ matched: 2, cut });
    expect(answer.text.includes('there are more before them')).toBe(cut);
  }
});

test('nothing new leaves it as it is, the end of the output is its end, and a later attempt has positions of its own', async () => {
  const since = '1:0=114';
  for (const [pieces, nextSince] of [
    [[], since],
    [[text(0, 114, 'the end'), { complete: true }], '1:0=121'],
    [[{ ...text(2, 0, 'again\n'), attempt: 2 }], '2:2=6'],
  ] as const) {
    const session = await openSession(reads(pieces).api);
    expect((await session.call('workload_logs', { workloadId: 'x', since })).data).toMatchObject({
      nextSince,
    });
  }
});

test('more ranks than an answer has room for have none, and a time is refused with what is expected', async () => {
  const ranks = Array.from({ length: 65 }, (_, rank) => text(rank, 0, 'line\n'));
  const session = await openSession(reads(ranks).api);
  expect((await session.call('workload_logs', { workloadId: 'x' })).data).toMatchObject({ nextSince: null });
  const refused = await session.call('workload_logs', { workloadId: 'x', since: '-10m' });
  expect(refused).toMatchObject({
    isError: true,
    text: expect.stringContaining('nextSince of an earlier answer'),
  });
});
