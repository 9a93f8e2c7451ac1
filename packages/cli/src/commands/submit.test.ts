import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import type { JobStateKind } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import type { Output } from '../io.ts';
import { runCli } from '../program.ts';
import {
  type Answers,
  aCause,
  aJob,
  anAttempt,
  anEvent,
  logPiece,
  silentStream,
  submittedAtMs,
  wire,
} from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run, temporaryDir } from '../testing/testContext.ts';

const jobId = 'job_0123456789ab';
const accepted = { Submit: () => ({ jobIds: [jobId], repeatedRequest: false }) };

function sentSpec(requests: readonly { readonly request: unknown }[]): unknown {
  const [first] = requests as readonly { readonly request: { readonly specJson: string } }[];
  return JSON.parse(first?.request.specJson ?? 'null');
}

test('a command after -- becomes a job in the current directory; stdout is its id alone', async () => {
  const { exitCode, stdout, stderr, requests } = await run(
    [
      'submit',
      '--name',
      'try',
      '--gpus',
      '2',
      '-e',
      'A=1',
      '-e',
      'HOME',
      '--',
      'python',
      'train.py',
      '--lr',
      '3',
      '--',
      'x',
    ],
    accepted,
    { environment: { workingDir: '/work dir', variables: { HOME: '/h' } } },
  );
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: exitCodes.ok, stdout: `${jobId}\n`, stderr: '' });
  expect(requests).toMatchObject([{ method: 'Submit', request: { requestId: 'request-1', dryRun: false } }]);
  expect(sentSpec(requests)).toEqual({
    name: 'try',
    command: ['python', 'train.py', '--lr', '3', '--', 'x'],
    workdir: '/work dir',
    env: { A: '1', HOME: '/h' },
    resources: { gpus: 2 },
  });
});

test('a container gets no working directory of this machine', async () => {
  const { requests } = await run(['submit', '--image', 'busybox'], accepted);
  expect(sentSpec(requests)).toEqual({ image: 'busybox' });
});

test('a job file is checked here, completed by flags, and may come from stdin', async () => {
  const file = 'name: llama\ncommand: [torchrun, train.py]\nresources: {nodes: 2}\n';
  const { stdout, requests } = await run(['submit', '-f', '-', '--nodes', '4'], accepted, { stdin: file });
  expect(stdout).toBe(`${jobId}\n`);
  expect(sentSpec(requests)).toMatchObject({
    name: 'llama',
    command: ['torchrun', 'train.py'],
    resources: { nodes: 4 },
    workdir: expect.stringContaining('muster-cli-'),
  });
});

test('a wrong job file gets every error with its place, and nothing is sent', async () => {
  const dir = temporaryDir();
  writeFileSync(join(dir, 'job.yaml'), 'command: [python]\nresources:\n  gpu: 4\npriority: 500\n');
  const { exitCode, stdout, stderr, requests } = await run(['submit', '-f', 'job.yaml'], accepted, {
    environment: { workingDir: dir },
  });
  expect({ exitCode, stdout, requests }).toEqual({ exitCode: exitCodes.usage, stdout: '', requests: [] });
  expect(stderr).toMatch(/^muster: not a valid job: 2 problems\n/);
  expect(stderr).toContain(
    'job.yaml:3:3  resources.gpu: unknown key; did you mean "gpus"?\n    3 |   gpu: 4\n      |   ^\n',
  );
  expect(stderr).toContain('job.yaml:4:11  priority: got 500; expected a whole number from 0 to 100');
});

test('wrong flags are explained as flags, whoever finds them', async () => {
  const refuse = () => {
    throw new MusterError('invalid', 'the spec is wrong', {
      problems: [{ path: 'priority', message: 'got 500', expected: null, suggestion: null }],
    });
  };
  const byCoordinator = await run(['submit', '--priority', '500', '--', 'true'], { Submit: refuse });
  expect(byCoordinator.exitCode).toBe(exitCodes.usage);
  expect(byCoordinator.stderr).toContain('--priority  got 500; expected a whole number from 0 to 100');
  const here = await run(['submit', '--memory', 'lots', '--nodes', '0', '--', 'true'], accepted);
  expect(here.requests).toEqual([]);
  expect(here.stderr).toMatch(/2 problems[\s\S]*--memory {2}got "lots"[\s\S]*--nodes {2}got 0/);
});

test('what only the coordinator finds wrong is shown as it says it', async () => {
  const refuse = () => {
    throw new MusterError('invalid', 'the spec is wrong', {
      problems: [{ path: 'after[0]', message: 'no such job', expected: null, suggestion: null }],
    });
  };
  const { exitCode, stderr } = await run(['submit', '--after', 'job_aaaaaaaaaaaa', '--', 'true'], {
    Submit: refuse,
  });
  expect({ exitCode, stderr }).toEqual({
    exitCode: exitCodes.usage,
    stderr: 'muster: not a valid job: 1 problem\nafter[0]: no such job\n',
  });
});

test.each([
  [['submit'], 'nothing to run'],
  [['submit', '--'], 'no command after `--`'],
  [['submit', 'python', 'train.py', '--lr', '3'], 'Try: muster submit -- python train.py --lr 3'],
  [['submit', 'job.yaml', '--wait'], 'Try: muster submit -f job.yaml --wait'],
  [['submit', '--follow', '-o', 'json', '--', 'true'], '--follow shows the output'],
  [['submit', '--dry-run', '--wait', '--', 'true'], '--dry-run submits nothing'],
  [['submit', '--request-id', 'two words', '--', 'true'], '--request-id takes'],
])('%j is refused before anything is sent', async (argv, message) => {
  const { exitCode, stderr, requests } = await run(argv, accepted);
  expect({ exitCode, requests }).toEqual({ exitCode: exitCodes.usage, requests: [] });
  expect(stderr).toContain(message);
});

test('job files that are none are refused by name, large ones before they are read', async () => {
  const dir = temporaryDir();
  mkdirSync(join(dir, 'folder'));
  writeFileSync(join(dir, 'large.yaml'), 'name: x\n');
  truncateSync(join(dir, 'large.yaml'), 50 * 1024 * 1024);
  writeFileSync(join(dir, 'binary.yaml'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0xff, 0xfe]));
  writeFileSync(join(dir, 'empty.yaml'), '');
  const refusal = async (file: string, stdin = '') => {
    const { exitCode, stderr } = await run(['submit', '-f', file], accepted, {
      environment: { workingDir: dir },
      stdin,
    });
    expect(exitCode).toBe(exitCodes.usage);
    return stderr;
  };
  expect(await refusal('missing.yaml')).toContain('cannot read the job file missing.yaml: it does not exist');
  expect(await refusal('folder')).toContain('cannot read the job file folder: it is a directory');
  expect(await refusal('large.yaml')).toContain('large.yaml is 50 MiB; a job spec has at most 256 KiB');
  expect(await refusal('/dev/zero')).toContain('/dev/zero is too large; a job spec has at most 256 KiB');
  expect(await refusal('-', 'x'.repeat(300_000))).toContain('the job spec on standard input is too large');
  expect(await refusal('binary.yaml')).toContain('not a text file');
  expect(await refusal('empty.yaml')).toContain('empty');
});

test('a submit survives a coordinator that is away for a moment, under the same request id', async () => {
  const first = await fakeCoordinator({});
  first.kill();
  const call = newCall(first.address, { columns: 80 });
  const running = runCli(['submit', '--', 'true'], call.context);
  await waitFor('a failed try', () => call.stderr().includes('reconnecting'));
  const second = await fakeCoordinator(
    {
      Submit: () => {
        if (second.requests.length === 1) throw new MusterError('unavailable', 'starting');
        return accepted.Submit();
      },
    },
    first.address,
  );
  expect(await running).toBe(exitCodes.ok);
  expect(call.stdout()).toBe(`${jobId}\n`);
  expect(second.requests).toMatchObject([
    { request: { requestId: 'request-1' } },
    { request: { requestId: 'request-1' } },
  ]);
});

test('a coordinator that stays away is named, with the remedy', async () => {
  const gone = await fakeCoordinator({});
  gone.kill();
  const call = newCall(gone.address);
  expect(await runCli(['submit', '--', 'true'], call.context)).toBe(exitCodes.unreachable);
  expect(call.stderr()).toBe(
    `muster: no coordinator answers at ${gone.address}\nStart one on this machine with: muster up\n`,
  );
});

test('a wrong token is refused with a hint', async () => {
  const coordinator = await fakeCoordinator(accepted);
  const call = newCall(coordinator.address, { environment: { token: 'wrong' } });
  expect(await runCli(['submit', '--', 'true'], call.context)).toBe(exitCodes.denied);
  expect(call.stderr()).toContain('Check MUSTER_TOKEN');
});

test('a repeated request says so', async () => {
  const { stdout, stderr } = await run(['submit', '--request-id', 'r1', '--', 'true'], {
    Submit: () => ({ jobIds: [jobId], repeatedRequest: true }),
  });
  expect(stdout).toBe(`${jobId}\n`);
  expect(stderr).toContain('accepted before');
});

test('--dry-run says whether it would start', async () => {
  const wouldWait = { kind: 'no_gpus_free', message: 'needs 8 GPUs; 2 are free', remedy: 'ask for fewer' };
  const waiting = await run(['submit', '--dry-run', '--', 'true'], { Submit: () => ({ wouldWait }) });
  expect(waiting).toMatchObject({
    exitCode: 0,
    stdout: 'valid; would wait: needs 8 GPUs; 2 are free\nask for fewer\n',
  });
  expect(waiting.requests).toMatchObject([{ request: { dryRun: true } }]);
  const behind = async (jobsAhead: number) =>
    (await run(['submit', '--dry-run', '--', 'true'], { Submit: () => ({ wouldWait, jobsAhead }) })).stdout;
  expect(await behind(1)).toMatch(/^valid; would wait behind 1 queued job: needs 8 GPUs/);
  expect(await behind(2)).toMatch(/^valid; would wait behind 2 queued jobs: needs 8 GPUs/);
  const wouldStartOn = ['node-1', 'node-2'];
  const starting = await run(['submit', '--dry-run', '--', 'true'], { Submit: () => ({ wouldStartOn }) });
  expect(starting.stdout).toBe('valid; would start now on node-1, node-2\n');
});

test('--schema prints the JSON Schema and needs no coordinator', async () => {
  const call = newCall(null);
  expect(await runCli(['submit', '--schema'], call.context)).toBe(exitCodes.ok);
  expect(JSON.parse(call.stdout())).toMatchObject({ title: 'Muster job', type: 'object' });
});

test('--array prints the id of the array, and all ids as JSON', async () => {
  const answers = { Submit: () => ({ jobIds: ['job_a', 'job_b'], arrayId: 'arr_0123456789ab' }) };
  const text = await run(['submit', '--array', '2', '--', 'true'], answers);
  expect(text.stdout).toBe('arr_0123456789ab\n');
  expect(text.requests).toMatchObject([{ request: { specJson: expect.stringContaining('"array":"2"') } }]);
  const json = await run(['submit', '--array', '2', '-o', 'json', '--', 'true'], answers);
  expect(JSON.parse(json.stdout)).toMatchObject({ jobIds: ['job_a', 'job_b'], arrayId: 'arr_0123456789ab' });
});

// ---- Waiting

function jobIn(state: JobStateKind): JobView {
  const endedAtMs = submittedAtMs + 5_000;
  const cause = aCause('exit_code', 'rank 0 on node-1 exited with code 3');
  switch (state) {
    case 'succeeded':
      return aJob({ state, endedAtMs, attempts: [anAttempt({ state: 'ended', endedAtMs })] });
    case 'failed':
    case 'cancelled':
      return aJob({ state, endedAtMs, cause, attempts: [anAttempt({ state: 'ended', endedAtMs, cause })] });
    default:
      return aJob({ state });
  }
}

/** A job that takes its next step, with an event, once the last one has been seen. */
function jobThatBecomes(...states: readonly JobStateKind[]): Answers {
  let position = 0;
  let seen = -1;
  return {
    ...accepted,
    GetCluster: () => ({ lastEventSeq: 4 }),
    GetJob: () => {
      seen = position;
      return wire.job(jobIn(states[position] ?? 'queued'));
    },
    WatchEvents: async function* (request: { sinceSeq: number; subject: string }) {
      expect(request).toMatchObject({ sinceSeq: 4, subject: jobId });
      while (position < states.length - 1) {
        await waitFor('the job is looked at', () => seen === position);
        position += 1;
        yield wire.event(anEvent(4 + position));
      }
    },
  };
}

test('--wait ends with the job: 0 when it succeeded', async () => {
  const { exitCode, stdout, stderr } = await run(
    ['submit', '--wait', '--', 'true'],
    jobThatBecomes('queued', 'running', 'succeeded'),
  );
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: exitCodes.ok,
    stdout: `${jobId}\n`,
    stderr: 'train succeeded after 5 s\n',
  });
});

test.each(['failed', 'cancelled'] as const)(
  '--wait ends with 1 and the cause when the job is %s',
  async (state) => {
    const { exitCode, stderr } = await run(
      ['submit', '--wait', '--', 'true'],
      jobThatBecomes('running', state),
    );
    expect(exitCode).toBe(exitCodes.jobFailed);
    expect(stderr).toBe(
      `train ${state} after 5 s: rank 0 on node-1 exited with code 3\nMore with: muster explain ${jobId}\n`,
    );
  },
);

test('--wait -o json prints the ended job too', async () => {
  const { stdout } = await run(['submit', '--wait', '-o', 'json', '--', 'true'], jobThatBecomes('succeeded'));
  const [submitted, ended] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(submitted).toMatchObject({ jobIds: [jobId] });
  expect(ended).toMatchObject({ id: jobId, state: 'succeeded' });
});

test('a terminal sees the state while it waits', async () => {
  const coordinator = await fakeCoordinator(jobThatBecomes('queued', 'running', 'succeeded'));
  const call = newCall(coordinator.address, { columns: 80 });
  await runCli(['submit', '--wait', '--', 'true'], call.context);
  expect(call.stderr()).toMatch(/train queued … [\d.]+ s.*train running … .*train succeeded after/s);
});

test('--wait goes on when the coordinator restarts', async () => {
  const first = await fakeCoordinator({
    ...jobThatBecomes('running'),
    WatchEvents: silentStream,
  });
  const call = newCall(first.address);
  const running = runCli(['submit', '--wait', '--', 'true'], call.context);
  await waitFor('the watch', () => first.requests.some(({ method }) => method === 'WatchEvents'));
  first.kill();
  await fakeCoordinator(jobThatBecomes('running', 'succeeded'), first.address);
  expect(await running).toBe(exitCodes.ok);
});

test.each(['--wait', '--follow'])(
  'Ctrl-C as soon as the id is shown detaches from a job, with %s',
  async (flag) => {
    const coordinator = await fakeCoordinator({ ...jobThatBecomes('running'), WatchEvents: silentStream });
    const call = newCall(coordinator.address);
    const { io } = call.context;
    const pressing = (output: Output): Output => ({
      ...output,
      async write(data) {
        await output.write(data);
        if (data === `${jobId}\n`) call.pressCtrlC();
      },
    });
    const context = {
      ...call.context,
      io: { ...io, stdout: pressing(io.stdout), stderr: pressing(io.stderr) },
    };
    expect(await runCli(['submit', flag, '--', 'true'], context)).toBe(exitCodes.interrupted);
    expect(call.stderr()).toContain(`Detached. `);
    expect(call.stderr()).toContain(`Reattach: muster logs -f ${jobId}`);
  },
);

test.each(['running', 'queued'] as const)(
  'Ctrl-C detaches from a %s job and says how to come back',
  async (state) => {
    const coordinator = await fakeCoordinator({
      ...jobThatBecomes(state),
      WatchEvents: silentStream,
    });
    const call = newCall(coordinator.address);
    const running = runCli(['submit', '--wait', '--', 'true'], call.context);
    await waitFor('the watch', () => coordinator.requests.some(({ method }) => method === 'WatchEvents'));
    call.pressCtrlC();
    expect(await running).toBe(exitCodes.interrupted);
    expect(call.stderr()).toBe(
      `Detached. ${jobId} is still ${state}. Reattach: muster logs -f ${jobId}\nStop it: muster stop ${jobId}\n`,
    );
    expect(coordinator.requests.map(({ method }) => method)).not.toContain('StopJobs');
  },
);

test('--follow prints the output of the job to the byte, its id and end on stderr', async () => {
  const bytes = Buffer.from([0x61, 0x00, 0xff, 0x0d, 0x0a, 0x62]);
  const answers = {
    ...jobThatBecomes('running', 'failed'),
    ReadLogs: async function* () {
      yield logPiece(bytes);
      yield logPiece('', { offset: bytes.length, complete: true });
    },
  };
  const coordinator = await fakeCoordinator(answers);
  const call = newCall(coordinator.address);
  expect(await runCli(['submit', '--follow', '--', 'true'], call.context)).toBe(exitCodes.jobFailed);
  expect(call.stdoutBytes()).toEqual(bytes);
  expect(call.stderr()).toMatch(new RegExp(`^${jobId}\ntrain failed after 5 s: .*code 3\n`));
});
