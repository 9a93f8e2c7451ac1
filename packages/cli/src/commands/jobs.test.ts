import { stripVTControlCharacters } from 'node:util';
import { MusterError } from '@muster/common/errors';
import type { JobView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aCause, aJob, anAttempt, anEnd, aTask, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const running = aJob({
  id: 'job_aaaaaaaaaaaa',
  name: 'llama',
  state: 'running',
  spec: {
    name: 'llama',
    command: ['torchrun', 'train.py'],
    resources: { nodes: 2, gpus: 4, gpu_type: ['H100'] },
  },
  attempts: [
    anAttempt({
      tasks: [
        aTask({ gpuUuids: ['a', 'b', 'c', 'd'], gpuIndexes: [3, 0, 1, 7] }),
        aTask({ nodeRank: 1, node: 'node-2', gpuUuids: ['GPU-b'] }),
      ],
      runningAtMs: submittedAtMs + 10_000,
      masterAddr: '127.0.0.1',
      masterPort: 5000,
    }),
  ],
});
const waiting = aJob({
  id: 'job_bbbbbbbbbbbb',
  pending: {
    kind: 'no_gpus_free',
    message: 'needs 8 GPUs on one node; 2 are free',
    remedy: 'wait for llama',
  },
});
const failed = aJob({
  id: 'job_cccccccccccc',
  name: 'broken',
  state: 'failed',
  endedAtMs: submittedAtMs + 30_000,
  cause: aCause('exit_code', 'rank 0 on node-1 exited with code 3'),
});

const list = { ListJobs: () => ({ jobs: [running, waiting, failed].map(wire.job), more: false }) };

test('jobs shows a table', async () => {
  const { exitCode, stdout, stderr } = await run(['jobs'], list);
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: '' });
  expect(stdout).toBe(
    [
      'ID                NAME    STATE    NEEDS       SUBMITTED  RAN   WHY',
      'job_aaaaaaaaaaaa  llama   running  2 × 4 GPUs  1 min ago  50 s',
      'job_bbbbbbbbbbbb  train   queued               1 min ago        needs 8 GPUs on one node; 2 are free',
      'job_cccccccccccc  broken  failed               1 min ago        rank 0 on node-1 exited with code 3',
      '',
    ].join('\n'),
  );
});

test('a terminal gets colours and a table that fits', async () => {
  const { stdout } = await run(['jobs'], list, { columns: 80 });
  expect(stdout).toContain('\x1b[31mfailed\x1b[39m');
  const plain = stripVTControlCharacters(stdout);
  expect(Math.max(...plain.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  const { stdout: colourless } = await run(['jobs'], list, { columns: 80, environment: { colour: 'never' } });
  expect(colourless).toBe(plain);
});

test('-o json prints what the API gave', async () => {
  const { stdout } = await run(['jobs', '-o', 'json'], list);
  expect(stdout.split('\n')).toHaveLength(2);
  expect(JSON.parse(stdout)).toEqual({ jobs: [running, waiting, failed], more: false, notStored: 0 });
});

test('filters reach the coordinator', async () => {
  const { requests } = await run(
    [
      'jobs',
      '--state',
      'failed,cancelled',
      '--state',
      'queued',
      '--array',
      'arr_0123456789ab',
      '--limit',
      '7',
    ],
    list,
  );
  expect(requests).toMatchObject([
    {
      request: {
        states: ['JOB_STATE_FAILED', 'JOB_STATE_CANCELLED', 'JOB_STATE_QUEUED'],
        arrayId: 'arr_0123456789ab',
        limit: 7,
        brief: true,
      },
    },
  ]);
});

test('--all asks page after page, each from where the last one ended', async () => {
  const pages = [
    { jobs: [aJob({ submitSeq: 9 }), aJob({ submitSeq: 8 })].map(wire.job), more: true },
    { jobs: [aJob({ submitSeq: 5 })].map(wire.job), more: false },
  ];
  const { stdout, requests } = await run(['jobs', '--all', '-o', 'json'], { ListJobs: () => pages.shift() });
  expect(JSON.parse(stdout).jobs).toHaveLength(3);
  expect(requests).toMatchObject([
    { request: { brief: false } },
    { request: { beforeSubmitSeq: 8, brief: false } },
  ]);
});

test('the newest jobs alone come with a hint', async () => {
  const { stderr } = await run(['jobs', '--limit', '1'], {
    ListJobs: () => ({ jobs: [wire.job(waiting)], more: true }),
  });
  expect(stderr).toBe('The newest 1; `muster jobs --all` shows every one.\n');
});

test('no jobs is no error', async () => {
  const none = { ListJobs: () => ({ jobs: [], more: false }) };
  expect(await run(['jobs'], none)).toMatchObject({
    exitCode: 0,
    stdout: '',
    stderr: expect.stringContaining('submit'),
  });
  expect(await run(['jobs', '--name', 'x'], none)).toMatchObject({
    exitCode: 0,
    stderr: 'No matching jobs.\n',
  });
});

test('jobs are filtered by project, label, time and request', async () => {
  const argv = [
    'jobs',
    '--project',
    'vision',
    '--user',
    'admin',
    '--label',
    'type=train',
    '--since',
    '2026-01-02',
    '--request',
    'r1',
  ];
  const { requests } = await run(argv, list);
  const sinceMs = new Date('2026-01-02T00:00').getTime();
  expect(requests).toMatchObject([
    { request: { project: 'vision', user: 'admin', label: 'type=train', sinceMs, requestId: 'r1' } },
  ]);
  const { exitCode, stderr } = await run(['jobs', '--since', 'yesterday'], list);
  expect(exitCode).toBe(exitCodes.usage);
  expect(stderr).toContain(
    '--since takes a duration such as 2h, or a date such as 2026-11-22; got "yesterday"',
  );
});

test('the jobs of a user are asked for by its name, and each job shows whose it is', async () => {
  const none = { ListJobs: () => ({ jobs: [], more: false }) };
  const { stderr, requests } = await run(['jobs', '--user', 'ann'], none);
  expect(requests).toMatchObject([{ request: { user: 'ann' } }]);
  expect(stderr).toBe('No matching jobs.\n');
  const { stdout } = await run(['jobs', '--columns', 'id,user'], list);
  expect(stdout).toMatch(/^ID +USER\n\S+ +admin\n/);
});

const training = (train_loss: number, step: number): JobView['training'] => ({
  framework: null,
  latest: { train_loss, step },
  totalSteps: 100,
  etaMs: 60_000,
  rows: 1,
  atMs: submittedAtMs,
});
const member = (index: number, loss: number | null) =>
  aJob({
    id: `job_00000000000${index}`,
    name: 'sweep',
    state: 'running',
    array: { id: 'arr_0123456789ab', index, size: 3 },
    training: loss === null ? null : training(loss, index),
  });
const sweep = {
  ListJobs: () => ({ jobs: [member(2, 2.5), member(1, null), member(0, 0.5)].map(wire.job), more: false }),
};

test('jobs of an array show it, and are sorted by a metric', async () => {
  const { stdout } = await run(
    ['jobs', '--array', 'sweep', '--metrics', 'train_loss', '--columns', 'array,name,state'],
    sweep,
  );
  expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
    'ARRAY             NAME      STATE    TRAIN_LOSS',
    'arr_0123456789ab  sweep[0]  running         0.5',
    'arr_0123456789ab  sweep[2]  running         2.5',
    'arr_0123456789ab  sweep[1]  running',
    '',
  ]);
  expect((await run(['jobs'], sweep)).stdout).toContain('ARRAY');
  const best = await run(['jobs', '--metrics', 'train_loss', '--limit', '1', '--columns', 'name'], sweep);
  expect(best.stdout).toMatch(/^NAME .*\nsweep\[0\] .*\n$/);
  const both = await run(['jobs', '--watch', '-o', 'json'], sweep);
  expect(both.exitCode).toBe(exitCodes.usage);
  expect(both.stderr).toContain('--watch and -o json exclude each other');
});

test('columns are chosen by name, and --wide shows all', async () => {
  const { stdout } = await run(['jobs', '--columns', 'id,step,loss,eta'], sweep, { columns: 80 });
  expect(stripVTControlCharacters(stdout)).toMatch(/job_000000000002 +2\/100 +2.5 +1 min\n/);
  const wide = await run(['jobs', '--wide'], sweep, { columns: 40 });
  expect(stripVTControlCharacters(wide.stdout)).toMatch(
    /^ID +ARRAY +NAME +STATE .* PROJECT +USER +LABELS +WHY\n/,
  );
  const { stderr } = await run(['jobs', '--columns', 'id,los'], sweep);
  expect(stderr).toContain('there is no column "los"\nDid you mean loss?');
});

test('--watch in a pipe writes a line for each change until it is interrupted', async () => {
  let looks = 0;
  const answers = {
    ListJobs: () => {
      looks += 1;
      return { jobs: [wire.job({ ...running, state: looks < 2 ? 'starting' : 'running' })], more: false };
    },
  };
  const { address } = await fakeCoordinator(answers);
  const call = newCall(address);
  const watching = runCli(['jobs', '--watch'], call.context);
  await waitFor('both', () => call.stdout().split('\n').length === 3);
  call.pressCtrlC();
  expect(await watching).toBe(exitCodes.ok);
  expect(call.stdout()).toMatch(
    /^.+  job_aaaaaaaaaaaa  llama  starting\n.+  job_aaaaaaaaaaaa  llama  running\n$/,
  );
});

test('an unknown state is refused with the known ones', async () => {
  const { exitCode, stderr } = await run(['jobs', '--state', 'done'], list);
  expect(exitCode).toBe(exitCodes.usage);
  expect(stderr).toMatch(/invalid state "done"; --state takes queued, .*succeeded/);
});

test('job shows everything about one', async () => {
  const { stdout } = await run(['job', 'job_aaaaaaaaaaaa'], { GetJob: () => wire.job(running) });
  const local = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/;
  expect(stdout.replace(local, 'TIME')).toBe(
    [
      'llama  job_aaaaaaaaaaaa',
      '',
      'State      running',
      'Submitted  TIME (1 min ago)',
      'Output     none yet',
      'Needs      2 × 4 GPUs, H100',
      'Command    torchrun train.py',
      'Priority   50',
      '',
      'Attempt 1  running for 50 s',
      'RANK  NODE    STATE    ENDED  OUTPUT  GPUS',
      '   0  node-1  running                 0-1,3,7',
      '   1  node-2  running                 1 GPU',
      '',
      'Next  muster logs job_aaaaaaaaaaaa -f',
      '      muster stop job_aaaaaaaaaaaa',
      '',
    ].join('\n'),
  );
});

test('what is frozen, what nodes are busy with, and where they are reached is shown', async () => {
  const second = { nodeRank: 1, node: 'node-2', address: '10.0.0.2' } as const;
  const showing = (...tasks: readonly ReturnType<typeof aTask>[]) =>
    wire.job({ ...running, state: 'starting', attempts: [anAttempt({ tasks })] });
  const frozen = showing(aTask({ address: '10.0.0.1' }), aTask({ ...second, frozen: true }));
  const busy = showing(
    aTask({ state: 'prepared' }),
    aTask({ ...second, state: 'assigned', doing: 'pulls image x:1' }),
  );

  const detail = await run(['job', running.id], { GetJob: () => frozen });
  expect(detail.stdout).toContain(
    [
      'RANK  NODE    STATE            ADDRESS   ENDED  OUTPUT  GPUS',
      '   0  node-1  running          10.0.0.1',
      '   1  node-2  running, frozen  10.0.0.2',
    ].join('\n'),
  );
  expect((await run(['job', running.id], { GetJob: () => busy })).stdout).toContain(
    'assigned: pulls image x:1',
  );
  const { stdout } = await run(['jobs'], { ListJobs: () => ({ jobs: [frozen, busy], more: false }) });
  expect(stdout).toContain('frozen on node-2: lease expired');
  expect(stdout).toContain('node-2 pulls image x:1');
});

test('job names the nodes that the next attempt does without', async () => {
  const cause = aCause('image_pull', 'no such image');
  const excludedNodes = [{ node: 'node-1', cause }];
  const { stdout } = await run(['job', waiting.id], {
    GetJob: () => wire.job({ ...waiting, excludedNodes }),
  });
  expect(stdout).toMatch(/Excluded +node-1: no such image \(image_pull\)\n/);
  const ended = await run(['job', failed.id], { GetJob: () => wire.job({ ...failed, excludedNodes }) });
  expect(ended.stdout, 'there is none').not.toContain('Excluded');
});

test('a task that was lost with its node is distinguished from one that never started', async () => {
  const message = 'node node-2 is dead';
  const startError = aCause('node_lost', message, { nodeRank: 1, node: 'node-2' });
  const exit = anEnd();
  const tasks = [
    aTask({ state: 'ended', exit }),
    aTask({ nodeRank: 1, state: 'ended', exit: { ...exit, statusLost: true, startError } }),
  ];
  const job = wire.job({ ...failed, attempts: [anAttempt({ tasks })] });
  const { stdout } = await run(['job', failed.id], { GetJob: () => job });
  expect(stdout).toMatch(/ 0 +node-1 +ended +not started +0 B/);
  expect(stdout).toMatch(/ 1 +node-1 +ended +lost: node node-2 is dead +0 B/);
});

test('job says why a job waits and why one failed', async () => {
  const { stdout: forWaiting } = await run(['job', waiting.id], { GetJob: () => wire.job(waiting) });
  expect(forWaiting).toContain(
    'Why        needs 8 GPUs on one node; 2 are free\n           wait for llama\n',
  );
  const { stdout: forFailed } = await run(['job', failed.id], { GetJob: () => wire.job(failed) });
  expect(forFailed).toContain('State      failed 30 s ago (exit_code)\n');
  expect(forFailed).toContain('Why        rank 0 on node-1 exited with code 3\n');
});

test.each(['llama', 'latest', 'job_aaa', 'sweep[3]'])(
  'a job called %s is for the coordinator to find',
  async (reference) => {
    const { requests } = await run(['job', reference], {
      ResolveJob: () => ({ jobId: running.id }),
      GetJob: () => wire.job(running),
    });
    expect(requests).toMatchObject([
      { method: 'ResolveJob', request: { reference } },
      { method: 'GetJob', request: { jobId: running.id } },
    ]);
  },
);

test('a job that nobody knows is refused', async () => {
  const unknown = () => {
    throw new MusterError('not_found', 'there is no job job_xyz');
  };
  expect(await run(['job', 'job_xyz'], { ResolveJob: unknown })).toMatchObject({
    exitCode: exitCodes.notFound,
    stderr: 'muster: there is no job job_xyz\n',
  });
});

test('explain prints the answer, its facts and what to do', async () => {
  const answers = {
    ExplainJob: () => ({
      job: wire.job(waiting),
      summary: 'it waits for GPUs',
      details: ['2 of 8 are free'],
      nextSteps: ['muster stop job_aaaaaaaaaaaa'],
    }),
  };
  const { stdout } = await run(['explain', waiting.id], answers);
  expect(stdout).toBe(
    `train  ${waiting.id}  queued\nit waits for GPUs\n\nNext\n  muster stop job_aaaaaaaaaaaa\n\nDetails\n  2 of 8 are free\n`,
  );
});
