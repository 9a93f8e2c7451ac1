/** What the last line of `muster up` promises: jobs outlive it, however it goes, and for however long it is away. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobView } from '@muster/common/views';
import { afterAll, expect, test } from 'vitest';
import { endAllNaming, processesNaming } from '../../scripts/processes.mjs';
import { type CommandResult, MusterCommand, musterProgram } from '../support/command.ts';
import { tempDir, waitFor } from '../support/services.ts';

const home = tempDir('up-life').path;
const dataDir = join(home, 'data');
const env = { PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR, TERM: 'xterm' };
const muster = (...args: readonly string[]): Promise<CommandResult> =>
  new MusterCommand(args, { env, cwd: home }).ended;

afterAll(() => endAllNaming(home, 2_000));

const upFlags = ['--nodes', '1', '--gpus', '2', '--cpus', '8', '--data', dataDir, '--port', '0'];
const ticksOf = (name: string) => {
  const path = join(home, name);
  return existsSync(path) ? readFileSync(path, 'utf8').length : 0;
};

/** A job that counts in a file of its name. */
async function ticker(name: string, ...spec: readonly string[]): Promise<string> {
  const script = `while :; do printf . >> ${join(home, name)}; sleep 0.1; done`;
  const { stdout, stderr, exitCode } = await muster(
    'submit',
    '--name',
    name,
    ...spec,
    '--',
    'sh',
    '-c',
    script,
  );
  expect(exitCode, stderr).toBe(0);
  await waitFor(`${name} ticks`, () => ticksOf(name), { until: (ticks) => ticks > 0 });
  const jobId = stdout.trim();
  await waitFor(`${name} is shown as running`, () => jobState(jobId), {
    until: ({ state }) => state === 'running',
  });
  return jobId;
}

async function untilTicksOn(name: string): Promise<void> {
  const before = ticksOf(name);
  await waitFor(`${name} ticks on`, () => ticksOf(name), { until: (ticks) => ticks > before + 2 });
}

async function jobState(id: string): Promise<JobView> {
  const { stdout, stderr, exitCode } = await muster('job', id, '-o', 'json');
  expect(exitCode, stderr).toBe(0);
  return JSON.parse(stdout) as JobView;
}

const servers = () => processesNaming(dataDir).filter((pid) => /coordinator|up --/.test(commandLine(pid)));
const commandLine = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
};

test('in the background, down and up again: jobs run on, only one that names a lease pauses', async () => {
  const started = await muster('up', '--detach', ...upFlags);
  expect(started.exitCode, started.stderr).toBe(0);
  expect(started.stdout).toContain('Muster is up at ');
  expect(started.stdout).toContain(`Its log: ${join(dataDir, 'up.log')}`);
  const free = await ticker('free');
  const leased = await ticker('leased', '--lease', '10s');

  const down = await muster('down', '--data', dataDir);
  expect(down.exitCode, down.stderr).toBe(0);
  expect(down.stdout).toContain('Muster is down. 2 jobs keep running:');
  expect(down.stdout).toMatch(new RegExp(`${leased} +leased +\\(pauses 10 s after Muster has stopped`));
  expect(down.stdout).toMatch(new RegExp(`${free} +free\\n`));
  expect(servers()).toEqual([]);

  // Its lease has ended: from here on the other one runs on what it was promised.
  let [seen, same] = [-1, 0];
  await waitFor(
    'the job with a lease is paused',
    () => {
      const ticks = ticksOf('leased');
      same = ticks === seen ? same + 1 : 0;
      seen = ticks;
      return same;
    },
    { intervalMs: 500, until: (times) => times >= 6 },
  );
  await untilTicksOn('free');

  expect((await muster('up', '--detach', ...upFlags)).exitCode).toBe(0);
  await untilTicksOn('leased');
  expect(await jobState(free)).toMatchObject({ state: 'running', attempts: [{ number: 1, leaseMs: null }] });
  expect(await jobState(leased)).toMatchObject({ attempts: [{ number: 1, leaseMs: 10_000 }] });
  const all = await muster('down', '--data', dataDir, '--stop-jobs');
  expect(all.stdout).toContain('Muster is down. No job is running.');
  const last = ticksOf('free');
  expect((await muster('down', '--data', dataDir)).stderr).toContain('No `muster up` is running');
  expect(ticksOf('free')).toBe(last);
});

test('the end of its terminal stops Muster and no job', async () => {
  // A terminal of its own, which goes when `script` is killed, as when a window is closed or an ssh connection breaks.
  const line = [musterProgram, 'up', ...upFlags].join(' ');
  const terminal = spawn('script', ['-qfc', line, '/dev/null'], {
    cwd: home,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let screen = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  await waitFor('it is up', () => screen, { until: (text) => text.includes('muster up --detach') });
  expect(screen).toContain('closing this terminal, stops Muster; running jobs keep running');
  const jobId = await ticker('window');
  terminal.kill('SIGKILL');
  await waitFor('Muster has stopped', servers, { until: (pids) => pids.length === 0 });
  await untilTicksOn('window');
  expect((await muster('up', '--detach', ...upFlags)).exitCode).toBe(0);
  expect(await jobState(jobId)).toMatchObject({ state: 'running', attempts: [{ number: 1 }] });
  await muster('down', '--data', dataDir, '--stop-jobs');
});
