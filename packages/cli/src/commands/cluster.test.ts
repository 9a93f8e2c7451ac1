import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aNode, anEvent, silentStream, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { eventually, fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const gpu = (index: number) => ({ uuid: `GPU-${index}`, model: 'H100', memoryMb: 81_920, simulated: false });
const busy = aNode({
  inventory: { ...aNode().inventory, gpus: [gpu(0), gpu(1)], labels: { rack: 'r1' } },
  gpuUses: [{ uuid: 'GPU-0', jobId: 'job_aaaaaaaaaaaa', attempt: 1 }],
  cpusUsed: 4,
  memoryUsedMb: 1_024,
});
const simulated = aNode({
  name: 'node-2',
  state: 'silent',
  silentForMs: 90_000,
  inventory: { ...aNode().inventory, gpus: [{ uuid: 'S-0', model: '', memoryMb: null, simulated: true }] },
});

test('nodes shows what is used of what there is, and simulated GPUs as such', async () => {
  const { stdout } = await run(['nodes'], { ListNodes: () => ({ nodes: [busy, simulated].map(wire.node) }) });
  expect(stdout).toBe(
    [
      'NAME    STATE                  GPUS           CPUS        MEMORY  JOBS',
      'node-1  online                 1/2 H100        4/8  1 GiB/64 GiB  job_aaaaaaaaaaaa',
      'node-2  silent for 1 min 30 s  0/1 simulated   0/8      0/64 GiB',
      '',
    ].join('\n'),
  );
});

test('no nodes is no error', async () => {
  const { exitCode, stderr } = await run(['nodes'], { ListNodes: () => ({ nodes: [] }) });
  expect(exitCode).toBe(exitCodes.ok);
  expect(stderr).toContain('token create');
});

test('node shows its GPUs and who has them', async () => {
  const { stdout } = await run(['node', 'node-1'], { GetNode: () => wire.node(busy) });
  expect(stdout).toContain('Labels     rack=r1\n');
  expect(stdout).toContain('GPU-0  H100   80 GiB  job_aaaaaaaaaaaa\nGPU-1  H100   80 GiB  free\n');
});

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
