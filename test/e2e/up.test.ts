/** `muster up`: a whole cluster from one command, which Ctrl-C ends and the next call finds as it was left. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobView, NodeView } from '@muster/common/views';
import { afterAll, expect, test } from 'vitest';
import { commandOf, endAllNaming, processesNaming, signalAll } from '../../scripts/processes.mjs';
import { type CommandResult, MusterCommand } from '../support/command.ts';
import { freePort, tempDir, waitFor } from '../support/services.ts';

const home = tempDir('up').path;
const dataDir = join(home, 'data');
// Nothing but a home and a PATH, as in a fresh login: later calls find what `up` has left behind.
const env = { PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR };
const start = (...args: readonly string[]) => new MusterCommand(args, { env, cwd: home });
const muster = (...args: readonly string[]): Promise<CommandResult> => start(...args).ended;

afterAll(() => endAllNaming(home, 2_000));

/** Processes of ours whose command line has all these words. */
function processesWith(...words: readonly string[]): readonly number[] {
  return processesNaming(home).filter((pid) => words.every((word) => commandOf(pid).includes(word)));
}

async function readJson<T>(...args: readonly string[]): Promise<T> {
  const { stdout, stderr, exitCode } = await muster(...args, '-o', 'json');
  expect(exitCode, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}

async function untilOnline(): Promise<void> {
  await waitFor('both nodes are online', () => readJson<{ nodes: readonly NodeView[] }>('nodes'), {
    intervalMs: 200,
    until: ({ nodes }) => nodes.filter(({ state }) => state === 'online').length === 2,
  });
}

test('two nodes from one command; jobs and their output outlive it', async () => {
  const port = await freePort();
  const flags = ['--nodes', '2', '--gpus', '2', '--data', dataDir, '--port', String(port)];
  const first = start('up', ...flags);
  await first.untilPrinted('Muster is up');
  expect(first.stdout).toContain('2 nodes, 4 simulated GPUs');

  // 1. Other calls need no address and no token.
  const hello = await muster(
    'submit',
    '--follow',
    '--nodes',
    '2',
    '--gpus',
    '2',
    '--',
    'sh',
    '-c',
    'echo hello $NODE_RANK',
  );
  expect(hello.exitCode, hello.stderr).toBe(0);
  expect(hello.stdout.split('\n').toSorted()).toEqual(['', '[0] hello 0', '[1] hello 1']);

  // 2. A second one is refused, by directory and by port.
  const sameData = await muster('up', '--data', dataDir, '--port', '0');
  expect(sameData.exitCode).not.toBe(0);
  expect(sameData.stderr).toContain(`another \`muster up\` is running with ${dataDir}`);
  mkdirSync(join(home, 'elsewhere'));
  const samePort = await muster('up', '--data', join(home, 'elsewhere', 'data'), '--port', String(port));
  expect(samePort.exitCode).not.toBe(0);
  expect(samePort.stderr).toContain(`127.0.0.1:${port} is in use`);

  // 3. A coordinator and an agent that die are started again, and the job notices nothing.
  const gate = join(home, 'gate');
  const script = `echo ready $$; while [ ! -e ${gate} ]; do sleep 0.1; done; echo done $$`;
  const jobId = (await muster('submit', '--', 'sh', '-c', script)).stdout.trim();
  await waitFor('the job runs', () => muster('logs', jobId), {
    intervalMs: 100,
    until: ({ stdout }) => stdout.includes('ready'),
  });
  // The shell is seen twice while it starts `sleep`.
  const taskPids = () =>
    waitFor('the process of the task', () => processesWith(gate), { until: ({ length }) => length === 1 });
  const task = await taskPids();
  const killed = [...processesWith('coordinator', dataDir), ...processesWith('agent', 'node-1', dataDir)];
  expect(killed.length).toBeGreaterThanOrEqual(2);
  const notGuards = killed.filter((each) => !commandOf(each).includes('guard'));
  // The readers of an agent end with it.
  signalAll(notGuards, 'SIGKILL');
  await first.untilPrinted('the coordinator ended');
  await first.untilPrinted('node-1 ended');
  await untilOnline();
  expect(await taskPids()).toEqual(task);

  // 4. Ctrl-C ends Muster and leaves the job; the next call finds both.
  first.signal('SIGINT');
  const ended = await first.ended;
  expect(ended.exitCode, ended.stderr).toBe(0);
  expect(ended.stderr).toContain(jobId);
  expect(processesWith('coordinator', dataDir)).toEqual([]);
  expect(await taskPids()).toEqual(task);
  const gone = await muster('jobs');
  expect(gone.exitCode).toBe(5);
  expect(gone.stderr).toContain(`no coordinator answers at 127.0.0.1:${port}`);

  const second = start('up', ...flags);
  await second.untilPrinted('Muster is up');
  const still = await waitFor('the job is shown as running', () => readJson<JobView>('job', jobId), {
    until: ({ state }) => state === 'running',
  });
  expect(still).toMatchObject({ attempts: [{ number: 1 }] });
  writeFileSync(gate, '');
  const followed = await muster('logs', '-f', jobId);
  expect(followed.stdout).toMatch(/^ready (\d+)\ndone \1\n$/);
  expect(await readJson<JobView>('job', jobId)).toMatchObject({ state: 'succeeded' });

  // 5. A supervisor's SIGTERM does the same, and nothing is left.
  second.signal('SIGTERM');
  expect((await second.ended).exitCode).toBe(0);
  signalAll(processesWith('guard'), 'SIGTERM');
  const left = () => processesNaming(home).map((pid) => `${pid} ${commandOf(pid)}`);
  await waitFor('no process is left', left, { until: (seen) => seen.length === 0 });
  expect(existsSync(join(dataDir, 'admin.token'))).toBe(true);
});
