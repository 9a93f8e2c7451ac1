import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { causeFacts } from '@muster/common/causeFacts';
import type { AttemptView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import {
  type Answers,
  aCause,
  aJob,
  anAttempt,
  anEnd,
  aTask,
  logPiece,
  wire,
} from '../testing/fakeCoordinator.ts';
import { newCall, run } from '../testing/testContext.ts';

const jobId = 'job_0123456789ab';
const steps =
  'iter 0: loss 4.2000, time 40.71ms, mfu -100.00%\niter 10: loss 3.1000, time 40.71ms, mfu 8.31%\n';
const outOfMemory =
  'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n';

/** Without a coordinator anywhere. */
async function diagnose(argv: readonly string[], files: Readonly<Record<string, string>>, stdin?: string) {
  const call = newCall(null, stdin === undefined ? {} : { stdin });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(call.home, name), text);
  mkdirSync(join(call.home, 'folder'));
  const exitCode = await runCli(['diagnose', ...argv], call.context);
  return { exitCode, stdout: call.stdout(), stderr: call.stderr() };
}

test('a file, without a coordinator', async () => {
  const { exitCode, stdout, stderr } = await diagnose(['run'], { run: steps + outOfMemory });
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: '' });
  expect(stdout).toBe(`State      failed
Cause      cuda_oom
Blame      job
Evidence   line 5: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
Retry      after a change
Advice     ${causeFacts.cuda_oom.advice}
Framework  nanogpt
Metrics    2 lines
First      step 0  loss 4.2  step_time_s 0.04071  mfu_percent unknown
Last       step 10  loss 3.1  step_time_s 0.04071  mfu_percent 8.31
`);
});

test('-o json has every field, whatever was found', async () => {
  const { stdout } = await diagnose(['-o', 'json', '-'], {}, steps);
  expect(stdout).toBe(
    `${JSON.stringify({
      state: 'running',
      cause: null,
      blame: null,
      evidence: null,
      retry: null,
      advice: null,
      framework: 'nanogpt',
      metrics: {
        rows: 2,
        first: { step: 0, loss: 4.2, step_time_s: 0.04071, mfu_percent: null },
        last: { step: 10, loss: 3.1, step_time_s: 0.04071, mfu_percent: 8.31 },
      },
    })}\n`,
  );
});

test('-o json has members in camelCase, like all other commands; only metrics are named by the program', async () => {
  const failure = `${steps}Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'\n`;
  const { stdout } = await diagnose(['-o', 'json', '-'], {}, failure);
  const { metrics, evidence, ...rest } = JSON.parse(stdout) as Record<string, object>;
  expect(evidence).not.toBeNull();
  const members = [rest, metrics, evidence].flatMap((each) => Object.keys(each ?? {}));
  expect(members.filter((name) => !/^[a-z]+(?:[A-Z][a-z]+)*$/.test(name))).toEqual([]);
});

test('a log that tells of nothing says so', async () => {
  expect((await diagnose(['-'], {}, 'hello\n')).stdout).toBe(
    'State  running\nCause  none: no sign of a failure found\n',
  );
});

test.each([
  ['folder', 'cannot read the log folder: it is a directory'],
  ['missing.log', 'cannot read the log missing.log: it does not exist'],
  ['./missing', 'cannot read the log ./missing: it does not exist'],
  ['run/below', 'cannot read the log run/below: a part of the path is no directory'],
])('%s is refused with its reason', async (name, reason) => {
  const { exitCode, stdout, stderr } = await diagnose([name], { run: '' });
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.usage, stdout: '' });
  expect(stderr).toBe(`muster: ${reason}\nGive a log file, - for standard input, or a job.\n`);
});

test('--attempt is for jobs', async () => {
  const { exitCode, stderr } = await diagnose(['run', '--attempt', '1'], { run: '' });
  expect(exitCode).toBe(exitCodes.usage);
  expect(stderr).toContain('--attempt is for jobs');
});

const failedEnd = anEnd({ exitCode: 1 });
const attempt = anAttempt({
  state: 'ended',
  tasks: [
    aTask({ state: 'ended', exit: failedEnd }),
    aTask({ nodeRank: 1, node: 'node-2', state: 'ended', exit: failedEnd }),
  ],
});

function answers(attempts: readonly AttemptView[], outputs: readonly string[]): Answers {
  const spec = { name: 'train', command: ['true'], resources: { nodes: 2, gpus: 0 } };
  return {
    GetJob: () => wire.job(aJob({ state: 'failed', spec, attempts })),
    ReadLogs: async function* () {
      for (const [nodeRank, output] of outputs.entries()) {
        const half = Math.floor(output.length / 2);
        yield logPiece(output.slice(0, half), { nodeRank });
        yield logPiece(output.slice(half), { nodeRank, offset: half, complete: true });
      }
    },
  };
}

async function diagnoseJob(given: Partial<AttemptView>, outputs: readonly string[]) {
  const { stdout } = await run(
    ['diagnose', jobId, '-o', 'json'],
    answers([{ ...attempt, ...given }], outputs),
  );
  return JSON.parse(stdout);
}

const reset =
  '[rank8]: RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:4242\n';

test('a job: the beginning among the output of all its ranks, and the metrics of the rank that prints them', async () => {
  const { exitCode, stdout, requests } = await run(
    ['diagnose', jobId, '--attempt', '1'],
    answers(
      [{ ...attempt, cause: aCause('exit_code', 'rank 0 on node-1 exited with code 1') }],
      [reset, steps + outOfMemory],
    ),
  );
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).toMatch(/^train {2}job_0123456789ab {2}attempt 1\n\nState +failed\nCause +cuda_oom\n/);
  expect(stdout).toMatch(/Metrics +2 lines/);
  expect(requests.at(-1)).toMatchObject({ request: { jobId, attempt: 1, follow: false } });
});

test('what Muster knows stands in no output', async () => {
  const cause = aCause('node_lost', 'node-1 was lost', { blame: 'node' });
  expect(await diagnoseJob({ cause }, [steps, reset])).toMatchObject({
    state: 'failed',
    cause: 'node_lost',
    blame: 'node',
    evidence: { line: null, text: 'node-1 was lost', rank: null },
    retry: 'other_node',
  });
  const preempted = aCause('preempted', 'gave way to llama', { blame: 'platform' });
  expect(await diagnoseJob({ cause: preempted }, [reset])).toMatchObject({
    state: 'stopped',
    retry: 'resume',
  });
});

test('of the rank that Muster names, the output shows it', async () => {
  const cause = aCause('cuda_oom', 'rank 1 on node-2 ran out of memory', { nodeRank: 1 });
  expect(
    await diagnoseJob({ cause }, [`[rank0]: ${outOfMemory.split('\n')[2]}\n`, outOfMemory]),
  ).toMatchObject({
    cause: 'cuda_oom',
    evidence: { line: 3 },
  });
});

test('where output says no more than Muster, its evidence serves', async () => {
  const evidence = { line: 7, text: 'exit code 1', rank: 3 };
  const cause = aCause('exit_code', 'rank 3 exited', { evidence });
  expect(await diagnoseJob({ cause }, ['', ''])).toMatchObject({ cause: 'exit_code', state: 'failed' });
});

test('an attempt that runs or went well', async () => {
  const running = { state: 'running', tasks: [aTask()] } as const;
  expect(await diagnoseJob(running, [steps])).toMatchObject({ state: 'running', cause: null });
  const well = { tasks: [aTask({ state: 'ended', exit: anEnd({ exitCode: 0 }) })] };
  expect(await diagnoseJob(well, [outOfMemory + steps])).toMatchObject({ state: 'completed', cause: null });
});

test('a task that has lost its upload of artifacts has failed, although its program has completed', async () => {
  const message = 'model: the store at s3.example.com does not answer';
  const failure = {
    source: 'artifacts',
    kind: 'artifact_store',
    message,
    consequence: false,
    rank: null,
    blame: null,
    line: null,
    atBoottimeMs: 1,
  } as const;
  const lost = aTask({ state: 'ended', exit: anEnd({ exitCode: 0, failure }) });
  const found = { cause: 'artifact_store', retry: 'other_node', evidence: { text: message } };
  // Another task of the gang still runs.
  const running = { state: 'running', tasks: [lost, aTask({ nodeRank: 1 })] } as const;
  expect(await diagnoseJob(running, [steps, steps])).toMatchObject({ state: 'running', ...found });
  const cause = aCause('artifact_store', `rank 0 on node-1 ended with 0: ${message}`);
  expect(await diagnoseJob({ cause, tasks: [lost] }, [steps])).toMatchObject({ state: 'failed', ...found });
});

test('a job that has not run, an attempt that is not there, a job that is not there', async () => {
  const pending = { kind: 'no_gpus_free', message: 'no GPUs are free', remedy: null } as const;
  const waiting = await run(['diagnose', jobId], { GetJob: () => wire.job(aJob({ pending })) });
  expect(waiting.exitCode).toBe(exitCodes.refused);
  expect(waiting.stderr).toContain('has not run yet');
  const none = await run(['diagnose', jobId, '--attempt', '9'], answers([attempt], []));
  expect(none).toMatchObject({ exitCode: exitCodes.notFound });
  expect(none.stderr).toContain('no attempt 9; the newest is 1');
});
