import type { JobId } from '@muster/common/ids';
import type { OrphanTask } from '@muster/common/views';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import {
  aCluster,
  aJob,
  aNode,
  anAttempt,
  anEvent,
  aTask,
  silentStream,
  submittedAtMs,
  wire,
} from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

test('token create prints the token alone on stdout', async () => {
  const expiresAtMs = submittedAtMs + 60_000 + 15 * 60_000;
  const answers = { CreateJoinToken: () => ({ token: 'muster_join_x', expiresAtMs }) };
  const { stdout, stderr, requests } = await run(['token', 'create', 'gpu-box'], answers);
  expect(stdout).toBe('muster_join_x\n');
  expect(stderr.replace(/127\.0\.0\.1:\d+/, 'ADDRESS')).toBe(
    'For one agent named gpu-box, valid for 15 min, on this machine: the coordinator serves on loopback only; ' +
      'it reads the token from its standard input:\n' +
      '  muster agent --data muster-gpu-box --name gpu-box --coordinator ADDRESS --join-token-file -\n',
  );
  expect(requests).toMatchObject([{ request: { nodeName: 'gpu-box', replace: false } }]);
  const again = await run(['token', 'create', 'gpu-box', '--replace'], answers);
  expect(again.requests).toMatchObject([{ request: { nodeName: 'gpu-box', replace: true } }]);
  expect(await run(['token', 'create', 'GPU box'], answers)).toMatchObject({
    exitCode: exitCodes.usage,
    requests: [],
  });
  expect(await run(['token', 'list', 'x'], answers)).toMatchObject({
    exitCode: exitCodes.usage,
    requests: [],
  });
});

test('token list shows no secret, and what it is of', async () => {
  const credential = { createdAtMs: submittedAtMs, openCalls: 0, used: false, replaces: false, node: '' };
  const ListCredentials = () => ({
    credentials: [
      { ...credential, id: 'admin:1', kind: 'admin', lastUsedAtMs: submittedAtMs },
      {
        ...credential,
        id: 'agent:gpu-1:2',
        kind: 'agent',
        node: 'gpu-1',
        openCalls: 3,
        expiresAtMs: submittedAtMs + 660_000,
      },
      {
        ...credential,
        id: 'join:3',
        kind: 'join',
        node: 'gpu-1',
        replaces: true,
        expiresAtMs: submittedAtMs,
      },
    ],
  });
  const { stdout } = await run(['token', 'list'], { ListCredentials });
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['ID', 'KIND', 'OF', 'LIMITS', 'CREATED', 'LAST USED', 'EXPIRES'],
    ['admin:1', 'admin', '1 min ago', '1 min ago', 'never'],
    ['agent:gpu-1:2', 'agent', 'gpu-1', '1 min ago', 'now', 'in 10 min'],
    ['join:3', 'join, replaces', 'gpu-1', '1 min ago', 'never', 'expired'],
    [''],
  ]);
  expect((await run(['token'], { ListCredentials })).stdout).toBe(stdout);
  const { credentials } = JSON.parse(
    (await run(['token', 'list', '-o', 'json'], { ListCredentials })).stdout,
  );
  expect(new Set(credentials.flatMap(Object.keys)), 'no names of the decoder').toEqual(
    new Set([
      'budget',
      'id',
      'kind',
      'node',
      'createdAtMs',
      'lastUsedAtMs',
      'expiresAtMs',
      'openCalls',
      'used',
      'usedBudget',
      'replaces',
      'user',
      'label',
      'projects',
      'verbs',
    ]),
  );
});

test('token revoke, token rotate and node remove say what they have done', async () => {
  const RevokeCredential = () => ({ ids: ['agent:gpu-1:2', 'join:3'] });
  const revoked = await run(['token', 'revoke', 'gpu-1', '--force'], { RevokeCredential });
  expect(revoked.requests).toMatchObject([{ request: { name: 'gpu-1', force: true } }]);
  expect(revoked.stdout).toBe('agent:gpu-1:2 is revoked.\njoin:3 is revoked.\n');
  const RotateAdminToken = () => ({ token: 'muster_admin_x' });
  expect((await run(['token', 'rotate'], { RotateAdminToken })).stdout).toBe('muster_admin_x\n');
  const removed = await run(['node', 'remove', 'gpu-1'], {
    ListNodes: () => ({ nodes: [wire.node(aNode({ name: 'gpu-1', state: 'silent' }))] }),
    RemoveNode: () => ({}),
  });
  expect(removed.requests.at(-1)).toMatchObject({ method: 'RemoveNode', request: { name: 'gpu-1' } });
  expect(removed.stdout).toBe('gpu-1 was removed from the cluster.\n');
});

test('events prints one line each, with the flat part of the data', async () => {
  const WatchEvents = async function* () {
    yield wire.event(anEvent(7));
    yield wire.event(anEvent(8, { kind: 'node.silent', subject: 'node-1', cloudEvent: { id: 'event-8' } }));
    yield wire.event(anEvent(8, { kind: 'training.stats', subjectSeq: 0 }));
  };
  const { stdout, requests } = await run(['events', '--since', '6', '--subject', 'job_0'], { WatchEvents });
  const local = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g;
  expect(stdout.replaceAll(local, 'TIME')).toBe(
    '     7  TIME  job.submitted       job_0123456789ab  name=train\n     8  TIME  node.silent         node-1\n' +
      // Not stored, and so without a number.
      '        TIME  training.stats      job_0123456789ab  name=train\n',
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

test.each<[readonly string[], object]>([
  [[], { sinceSeq: 0, newest: 20 }],
  [['--since', '0'], { sinceSeq: 0 }],
  [['--since', '7', '--limit', '3'], { sinceSeq: 7, newest: 3 }],
  [['--since', '2h'], { startTime: '-2h' }],
  [['--since', '2026-11-29T01:00', '--until', '90m'], { startTime: '2026-11-29T01:00', endTime: '-90m' }],
  [['--until', '2026-11-29'], { endTime: '2026-11-29' }],
])('events %j asks for %j', async (flags, request) => {
  const WatchEvents = async function* () {};
  const { requests } = await run(['events', ...flags], { WatchEvents });
  // The decoder marks which optional fields are there.
  const asked = Object.entries(requests.at(-1)?.request ?? {}).filter(([name]) => !name.startsWith('_'));
  expect(Object.fromEntries(asked)).toEqual({ follow: false, sinceSeq: 0, ...request });
});

test('events refuses an end of what is followed', async () => {
  const { exitCode, stderr } = await run(['events', '-f', '--until', '1h'], {});
  expect(exitCode).toBe(exitCodes.usage);
  expect(stderr).toContain('--until and --follow exclude each other');
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
  await waitFor('three events', () => call.stdout().split('\n').length === 4);
  first.kill();
  await fakeCoordinator({ WatchEvents: (request, aborted) => upTo(6, request, aborted) }, first.address);
  await waitFor('six events', () => call.stdout().split('\n').length === 7);
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

test('maintenance begins one, ends it, and shows what is left', async () => {
  const SetMaintenance = ({ forMs }: { forMs: number }) => aCluster({ maintenanceMs: forMs });
  const begun = await run(['maintenance', '--for', '2h'], { SetMaintenance });
  expect(begun.stdout).toBe('Leases last for 2 h more; end that with: muster maintenance --end\n');
  expect(begun.requests).toEqual([{ method: 'SetMaintenance', request: { forMs: 7_200_000 } }]);

  const ended = await run(['maintenance', '--end'], { SetMaintenance });
  expect(ended.stdout).toBe(
    'The maintenance has ended; leases that were given in it last until their time.\n',
  );
  expect(ended.requests).toEqual([{ method: 'SetMaintenance', request: { forMs: 0 } }]);

  const shown = await run(['maintenance'], { GetCluster: () => aCluster() });
  expect(shown.stdout).toBe('There is no maintenance; begin one with: muster maintenance --for 2h\n');
  const json = await run(['maintenance', '-o', 'json'], { GetCluster: () => aCluster({ maintenanceMs: 5 }) });
  expect(JSON.parse(json.stdout)).toMatchObject({ maintenanceMs: 5, pausedBecause: '' });
});

test.each([[['--for', '5s']], [['--for', '25h']], [['--for', 'long']], [['--for', '2h', '--end']]])(
  'maintenance %j is refused before anybody is asked',
  async (flags) => {
    expect(await run(['maintenance', ...flags])).toMatchObject({ exitCode: exitCodes.usage, requests: [] });
  },
);

test('store advance says whether jobs are started again', async () => {
  const ListNodes = () => ({ nodes: [] });
  const paused = { AdvanceStore: () => aCluster({ pausedBecause: 'leases end in 71 s' }), ListNodes };
  const waiting = await run(['store', 'advance'], paused);
  expect(waiting.stdout).toBe('The store was advanced; nothing is started yet: leases end in 71 s.\n');
  expect(waiting.requests[0]).toEqual({ method: 'AdvanceStore', request: {} });
  const { stdout } = await run(['store', 'advance'], { AdvanceStore: () => aCluster(), ListNodes });
  expect(stdout).toBe('The store was advanced; jobs are started again.\n');
  expect(await run(['store'])).toMatchObject({ exitCode: exitCodes.usage, requests: [] });
  expect(await run(['store', 'drop'])).toMatchObject({ exitCode: exitCodes.usage, requests: [] });
});

const orphan: OrphanTask = {
  task: { jobId: 'job_aaaaaaaaaaaa' as JobId, attempt: 2, nodeRank: 0 },
  name: 'llama',
  gpuUuids: ['GPU-0', 'GPU-1'],
  frozen: true,
};
const withOrphan = aNode({
  orphans: [orphan],
  gpuUses: orphan.gpuUuids.map((uuid) => ({ uuid, jobId: orphan.task.jobId, attempt: 2 })),
});
const orphanText =
  '1 task runs on node-1 that the store does not know, holding 2 GPUs:\n' +
  '  job_aaaaaaaaaaaa  llama  attempt 2  node rank 0  2 GPUs  frozen\n' +
  'Kill it: muster node end-orphans node-1\n';

test('tasks that the store does not know are named where one looks, with the command that ends them', async () => {
  const answers = {
    AdvanceStore: () => aCluster(),
    GetCluster: () => aCluster(),
    ListNodes: () => ({ nodes: [wire.node(withOrphan)] }),
    GetNode: () => wire.node(withOrphan),
  };
  expect((await run(['store', 'advance'], answers)).stdout).toContain(orphanText);
  expect((await run(['node', 'node-1'], answers)).stdout).toContain(orphanText);
  const nodes = await run(['nodes'], answers);
  expect(nodes.stderr).toContain(orphanText);
  expect(nodes.stdout).toContain('job_aaaaaaaaaaaa (orphan)');
  const advanced = await run(['store', 'advance', '-o', 'json'], answers);
  expect(JSON.parse(advanced.stdout)).toMatchObject({ orphans: [{ node: 'node-1', ...orphan }] });
});

test('node end-orphans waits until they are gone', async () => {
  let asked = 0;
  const GetNode = () => wire.node((asked += 1) < 2 ? withOrphan : aNode());
  const { stdout, exitCode } = await run(['node', 'end-orphans', 'node-1'], {
    EndOrphans: () => wire.node(withOrphan),
    GetNode,
  });
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).toBe(
    '1 orphan has ended on node-1:\n  job_aaaaaaaaaaaa  llama  attempt 2  node rank 0  2 GPUs  frozen\n',
  );
  expect(asked).toBe(2);
  const none = await run(['node', 'end-orphans', 'node-1'], { EndOrphans: () => wire.node(aNode()) });
  expect(none.stdout).toBe('node-1 has no orphans.\n');
});

test('token revoke of an agent whose node runs a job wants --force', async () => {
  const agent = { id: 'agent:node-1:2', kind: 'agent', node: 'node-1' };
  const attempts = [anAttempt({ tasks: [aTask({ node: 'node-1', state: 'running', exit: null })] })];
  const answers = {
    ListCredentials: () => ({ credentials: [agent] }),
    ListJobs: () => ({ jobs: [wire.job(aJob({ state: 'running', attempts }))], more: false }),
    RevokeCredential: () => ({ ids: [agent.id] }),
  };
  for (const name of ['node-1', 'agent:node-1']) {
    const refused = await run(['token', 'revoke', name], answers);
    expect(refused.exitCode).toBe(exitCodes.refused);
    expect(refused.stderr).toMatch(/node-1 runs job_\w+, which end there with their leases/);
    expect(refused.requests.map(({ method }) => method)).toEqual(['ListCredentials', 'ListJobs']);
  }
  expect((await run(['token', 'revoke', 'node-1', '--force'], answers)).exitCode).toBe(exitCodes.ok);
});
