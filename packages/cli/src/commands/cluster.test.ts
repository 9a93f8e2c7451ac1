import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { anEvent, silentStream, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { eventually, fakeCoordinator, newCall, run } from '../testing/testContext.ts';

test('token create prints the token alone on stdout', async () => {
  const expiresAtMs = submittedAtMs + 60_000 + 15 * 60_000;
  const answers = { CreateJoinToken: () => ({ token: 'muster_join_x', expiresAtMs }) };
  const { stdout, stderr, requests } = await run(['token', 'create', 'gpu-box'], answers);
  expect({ stdout, stderr }).toEqual({
    stdout: 'muster_join_x\n',
    stderr: 'For one agent called gpu-box, valid for 15 min.\n',
  });
  expect(requests).toMatchObject([{ request: { nodeName: 'gpu-box' } }]);
  expect(await run(['token', 'create', 'GPU box'], answers)).toMatchObject({
    exitCode: exitCodes.usage,
    requests: [],
  });
  expect(await run(['token', 'list', 'x'], answers)).toMatchObject({
    exitCode: exitCodes.usage,
    requests: [],
  });
});

test('events prints one line each, with the flat part of the data', async () => {
  const WatchEvents = async function* () {
    yield wire.event(anEvent(7));
    yield wire.event(anEvent(8, { kind: 'node.silent', subject: 'node-1', cloudEvent: { id: 'event-8' } }));
  };
  const { stdout, requests } = await run(['events', '--since', '6', '--subject', 'job_0'], { WatchEvents });
  const local = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g;
  expect(stdout.replaceAll(local, 'TIME')).toBe(
    '     7  TIME  job.submitted       job_0123456789ab  name=train\n     8  TIME  node.silent         node-1\n',
  );
  expect(requests).toMatchObject([{ request: { sinceSeq: 6, subject: 'job_0', follow: false } }]);
});

test('events says what is wrong with a node and what has changed of it in a line', async () => {
  const data = [
    { kind: 'xid_79', gpuUuid: 'GPU-1', task: null, message: 'it fell off the bus', evidence: 'NVRM: Xid' },
    { changes: ['GPU-1 is gone', 'a', 'b', 'c', 'd'], gpus: [{ uuid: 'GPU-1' }] },
  ];
  const WatchEvents = async function* () {
    for (const [index, each] of data.entries())
      yield wire.event(anEvent(index + 1, { subject: 'node-1', cloudEvent: { data: each } }));
  };
  const { stdout } = await run(['events'], { WatchEvents });
  expect(stdout.split('\n').map((line) => line.replace(/^.*node-1 +/, ''))).toEqual([
    'kind=xid_79 gpuUuid=GPU-1 it fell off the bus',
    'GPU-1 is gone; a; b; 2 more',
    '',
  ]);
});

test('events -o json prints one CloudEvent a line', async () => {
  const events = [anEvent(1), anEvent(2)];
  const WatchEvents = async function* () {
    yield* events.map(wire.event);
  };
  const { stdout } = await run(['events', '-o', 'json'], { WatchEvents });
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(events.map(({ cloudEvent }) => cloudEvent));
});

test('events -f goes on after a restart of the coordinator and misses nothing', async () => {
  async function* upTo(last: number, request: { sinceSeq: number }, aborted: AbortSignal) {
    for (let seq = request.sinceSeq + 1; seq <= last; seq += 1) yield wire.event(anEvent(seq));
    yield* silentStream(null, aborted);
  }
  const first = await fakeCoordinator({
    GetCluster: () => ({}),
    WatchEvents: (request, aborted) => upTo(3, request, aborted),
  });
  const call = newCall(first.address);
  const running = runCli(['events', '-f', '-o', 'json'], call.context);
  await eventually('three events', () => call.stdout().split('\n').length === 4);
  first.kill();
  await fakeCoordinator({ WatchEvents: (request, aborted) => upTo(6, request, aborted) }, first.address);
  await eventually('six events', () => call.stdout().split('\n').length === 7);
  call.pressCtrlC();
  expect(await running).toBe(exitCodes.interrupted);
  const ids = call
    .stdout()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).id);
  expect(ids).toEqual([1, 2, 3, 4, 5, 6].map((seq) => `event-${seq}`));
  expect(call.stderr()).toContain('muster events -f --since 6');
});
