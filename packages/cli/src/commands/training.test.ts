import { stripVTControlCharacters } from 'node:util';
import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import {
  aCause,
  aCheckpoint,
  aJob,
  anAttempt,
  aTask,
  submittedAtMs,
  wire,
} from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

const running = aJob({
  id: 'job_aaaaaaaaaaaa',
  name: 'llama',
  state: 'running',
  spec: { name: 'llama', command: ['torchrun', 'train.py'], resources: { nodes: 1, gpus: 1 } },
  attempts: [anAttempt({ tasks: [aTask()] })],
});

test('job shows its training, its newest checkpoint and what its GPU time was spent on', async () => {
  const job = {
    ...running,
    training: {
      framework: 'nanogpt',
      latest: { step: 1200, train_loss: 2.30719, learning_rate: 0.00003, tokens_per_second: 812 },
      totalSteps: 5000,
      etaMs: 7_500_000,
      rows: 12,
      atMs: submittedAtMs,
    },
    checkpoints: [aCheckpoint(), aCheckpoint({ name: 'checkpoint-1000', step: 1000, suspect: true })],
    ledger: [
      { kind: 'productive', cause: null, gpuSeconds: 7_200 },
      { kind: 'failure', cause: 'node_lost', gpuSeconds: 240 },
      { kind: 'hang', cause: null, gpuSeconds: 0 },
    ],
    costUsd: 16.321,
    preemptions: 2,
    batchScale: 0.5,
    lrScale: 0.1,
    attempts: [anAttempt({ number: 2, resume: { name: 'checkpoint-500', step: 500 }, tasks: [aTask()] })],
  } as const;
  const { stdout } = await run(['job', job.id], { GetJob: () => wire.job(job) });
  expect(stdout).toMatch(
    /Training +step 1200 of 5000, loss 2\.307, learning rate 0\.00003, 812 tokens\/s, 2 h 5 min to go\n/,
  );
  expect(stdout).toMatch(/Checkpoint +checkpoint-1000 \(step 1000\), 3 MiB, 1 min ago, verified, suspect\n/);
  expect(stdout).toMatch(/GPU time +2 h productive, 4 min lost \(node_lost\)\nCost +16\.32 USD\n/);
  expect(stdout).toMatch(
    /Scaled +MUSTER_BATCH_SCALE=0\.5 offered\n +MUSTER_LR_SCALE=0\.1 offered\nPreempted +2 times\n/,
  );
  expect(stdout).toContain('Start  offered checkpoint-500 (step 500)\n');
});

test('of a job that has ended nothing is left to go, and all its attempts count', async () => {
  const training = {
    framework: null,
    latest: { step: 140, step_seconds: 0.04963 },
    totalSteps: 200,
    etaMs: 5_200,
    rows: 12,
    atMs: submittedAtMs,
  };
  const attempts = [1, 2, 3].map((number) =>
    anAttempt({
      number,
      state: 'ended',
      allocatedAtMs: submittedAtMs + number * 10_000,
      runningAtMs: submittedAtMs + number * 10_000,
      endedAtMs: submittedAtMs + number * 10_000 + 5_000,
    }),
  );
  const ended = {
    ...running,
    training,
    attempts,
    state: 'failed',
    endedAtMs: submittedAtMs + 59_500,
  } as const;
  const cause = aCause('cuda_oom', 'rank 1 on node-1 exited with code 1: CUDA out of memory');
  const failed = await run(['job', running.id], { GetJob: () => wire.job({ ...ended, cause }) });
  expect(failed.stdout).toMatch(/State +failed after 3 attempts \(49 s\), just now \(cuda_oom\)\n/);
  expect(failed.stdout).toMatch(/Training +step 140 of 200, 49\.6 ms\/step\n/);
  const stopped = { ...ended, state: 'cancelled', attempts: attempts.slice(0, 1) } as const;
  const GetJob = () => wire.job({ ...stopped, cause: aCause('cancelled', 'stopped by a user') });
  expect((await run(['job', running.id], { GetJob })).stdout).toMatch(/State +cancelled just now\n/);
});

test('what was noticed of a training is on every screen, also once it has ended well', async () => {
  const signs = [{ kind: 'nan_loss', step: 80, lastGoodStep: 70 }] as const;
  const attempts = [anAttempt({ state: 'ended', endedAtMs: submittedAtMs + 9_000, signs })];
  const job = { ...running, state: 'succeeded', endedAtMs: submittedAtMs + 9_000, attempts } as const;
  const shown = await run(['job', job.id], { GetJob: () => wire.job(job) });
  expect(shown.stdout).toMatch(/State +succeeded \(NaN\) 51 s ago\n/);
  expect(shown.stdout).toMatch(/Signs +loss NaN at step 80 \(last normal step: 70\)\n/);
  const list = await run(['jobs'], { ListJobs: () => ({ jobs: [wire.job(job)], more: false }) });
  expect(list.stdout).toMatch(/ succeeded \(NaN\) .* loss NaN since step 80\n/);
  const hung = { ...running, attempts: [anAttempt({ hungAtMs: submittedAtMs, hangs: true })] };
  const hanging = await run(['job', hung.id], { GetJob: () => wire.job(hung) });
  expect(hanging.stdout).toMatch(/State +running \(hangs\)\n/);
  expect(hanging.stdout).toMatch(/Signs +hangs since \d{4}-/);
});

test('job says when output was last seen, while there may be more', async () => {
  const GetJob = () => wire.job({ ...running, outputAtMs: submittedAtMs + 15_000 });
  expect((await run(['job', running.id], { GetJob })).stdout).toMatch(/Output +last seen 45 s ago\n/);
});

test('no line of a job is wider than its terminal, and breaks stand between words', async () => {
  const pending = {
    kind: 'no_gpus_free',
    message:
      'waiting for 2 free GPUs on one node (4 of 4 in use: llama-8b, mixtral, and 3 more; one ends in about 12 min)',
    remedy:
      'ask for fewer GPUs per node (resources.gpus), wait, or raise its priority over that of the others',
  } as const;
  const GetJob = () => wire.job({ ...running, state: 'queued', attempts: [], pending });
  const { stdout } = await run(['job', running.id], { GetJob }, { columns: 60 });
  const lines = stripVTControlCharacters(stdout).split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
  expect(lines.map((line) => line.trim()).join(' ')).toContain(pending.remedy);
});

test('job --status prints the status file, which cannot move the cursor', async () => {
  const GetTrainingStatus = () => ({ markdown: '# llama\n\u001b[2Jstep 3\n' });
  const { stdout } = await run(['job', running.id, '--status'], {
    GetJob: () => wire.job(running),
    GetTrainingStatus,
  });
  expect(stdout).toBe('# llama\n\\u001b[2Jstep 3\n');
});

test('checkpoints lists what was saved, newest first', async () => {
  const checkpoints = [
    aCheckpoint({ metrics: { step: 500, train_loss: 2.34567 } }),
    aCheckpoint({
      name: 'checkpoint-1000',
      step: 1000,
      verdict: 'corrupt',
      depth: 'quick',
      saveDurationMs: null,
      problem: 'the central directory is missing',
      attempt: 2,
      shared: true,
    }),
  ];
  const GetJob = () => wire.job({ ...running, checkpoints });
  const { stdout } = await run(['checkpoints', running.id], { GetJob });
  expect(stdout).toBe(
    [
      'STEP  NAME             VERDICT                                     SIZE  SAVED      METRICS           TOOK  ATTEMPT  NODE',
      '1000  checkpoint-1000  corrupt: the central directory is missing  3 MiB  1 min ago                                2  node-1 (shared)',
      ' 500  checkpoint-500   verified                                   3 MiB  1 min ago  train_loss 2.346   2 s        1  node-1',
      '',
    ].join('\n'),
  );
  const metrics = Object.fromEntries(
    Array.from({ length: 12 }, (_, index) => [`loss_of_head_${index}`, index]),
  );
  const many = { GetJob: () => wire.job({ ...running, checkpoints: [aCheckpoint({ metrics })] }) };
  for (const columns of [60, 80, 100, 160]) {
    const narrow = await run(['checkpoints', running.id], many, { columns });
    const widths = stripVTControlCharacters(narrow.stdout)
      .split('\n')
      .map((line) => line.length);
    expect(Math.max(...widths), `${columns} columns`).toBeLessThanOrEqual(columns);
  }
  const json = await run(['checkpoints', running.id, '-o', 'json'], { GetJob });
  expect(JSON.parse(json.stdout)).toMatchObject([{ step: 500 }, { step: 1000, verdict: 'corrupt' }]);
  const none = await run(['checkpoints', running.id], { GetJob: () => wire.job(running) });
  expect(none).toMatchObject({ exitCode: exitCodes.ok, stdout: '' });
  expect(none.stderr).toContain(
    'has saved no checkpoint yet that was seen in the directory in MUSTER_CHECKPOINT_DIR',
  );
});

test('extend says how long each attempt may run now', async () => {
  const spec = { ...running.spec, max_runtime: '1h' };
  const answers = {
    GetJob: () => wire.job(running),
    ExtendJob: () => wire.job({ ...running, spec, extraRuntimeMs: 7_200_000 }),
  };
  const { stdout, requests } = await run(['extend', running.id, '2h'], answers);
  expect(stdout).toBe(`Each attempt of ${running.id} may run for 3 h now.\n`);
  expect(requests.at(-1)).toMatchObject({ method: 'ExtendJob', request: { byMs: 7_200_000 } });
  const wrong = await run(['extend', running.id, 'soon'], answers);
  expect(wrong).toMatchObject({ exitCode: exitCodes.usage });
  expect(wrong.stderr).toContain('invalid duration "soon" (max 365d)');
});

test('extend survives a coordinator that is away for a moment, under the same request id', async () => {
  let calls = 0;
  const ExtendJob = () => {
    calls += 1;
    if (calls === 1) throw new MusterError('unavailable', 'starting');
    return wire.job({ ...running, extraRuntimeMs: 7_200_000 });
  };
  const { exitCode, requests } = await run(['extend', 'llama', '2h'], { ExtendJob });
  expect(exitCode).toBe(exitCodes.ok);
  const request = { jobId: 'llama', byMs: 7_200_000, requestId: 'request-1' };
  expect(requests).toMatchObject([{ request }, { request }]);
});

test('requeue --from asks for a step, a name, or the start', async () => {
  const answers = {
    GetJob: () => wire.job(running),
    RequeueJob: () => ({ jobId: running.id, newJob: false }),
  };
  const step = await run(['requeue', running.id, '--force', '--from', '500'], answers);
  expect(step.requests.at(-1)).toMatchObject({ request: { fromStep: 500, fromStart: false } });
  const start = await run(['requeue', running.id, '--force', '--from', 'start'], answers);
  expect(start.requests.at(-1)?.request).toMatchObject({ fromStart: true });
  expect(start.requests.at(-1)?.request).not.toHaveProperty('fromStep', expect.anything());
  const named = await run(['requeue', running.id, '--force', '--from', 'step_7.pt.attempt-1'], answers);
  expect(named.requests.at(-1)).toMatchObject({
    request: { fromName: 'step_7.pt.attempt-1', fromStart: false },
  });
  const wrong = await run(['requeue', running.id, '--from', 'best'], answers);
  expect(wrong.stderr).toContain(
    '--from takes the step of a checkpoint, such as 500, its name, such as step_500.pt, or start; got "best"',
  );
});
