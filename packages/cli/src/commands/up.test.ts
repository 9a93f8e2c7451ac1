import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { readUpState } from '../supervisor/upState.ts';
import { downText, goodbyeText } from '../supervisor/upText.ts';
import { aJob, anAttempt } from '../testing/fakeCoordinator.ts';
import { newCall, type TestCall, temporaryDir } from '../testing/testContext.ts';

const fakeDaemon = join(import.meta.dirname, '../testing/fakeDaemon.ts');

interface RunningUp extends TestCall {
  readonly ended: Promise<number>;
  /** What the fake daemons noted so far. */
  history(): readonly string[];
}

function startUp(dataDir: string, ...flags: readonly string[]): RunningUp {
  return startUpAs(1000, dataDir, ...flags);
}

function startUpAs(uid: number, dataDir: string, ...flags: readonly string[]): RunningUp {
  const call = newCall(null, { environment: { programCommand: [process.execPath, fakeDaemon], uid } });
  const ended = runCli(['up', '--data', dataDir, '--port', '0', ...flags], call.context);
  onTestFinished(async () => {
    call.pressCtrlC();
    await ended;
  });
  return { ...call, ended, history: () => linesOf(join(dataDir, 'history')) };
}

function linesOf(path: string): readonly string[] {
  try {
    return readFileSync(path, 'utf8').trim().split('\n');
  } catch {
    return [];
  }
}

const isUp = (up: RunningUp) => waitFor('up', () => up.stdout().includes('Muster is up'));

test('up starts everything, says what next, and stops in order', async () => {
  const dataDir = temporaryDir();
  const outside =
    '--nats nats://127.0.0.1:4222 --nats-ca ca.pem --nats-replicas 3 --prometheus-url http://127.0.0.1:9090 --prices node:gpu-7=1.20 --watch-dir data';
  const up = startUp(dataDir, '--nodes', '2', '--gpus', '4', ...outside.split(' '));
  const { workingDir } = up.context.environment;
  await isUp(up);
  expect(up.stdout()).toMatch(/^Muster is up at 127\.0\.0\.1:\d+: 2 nodes, no GPUs/);
  expect(up.stdout()).toContain('  muster submit --follow -- echo hello');
  expect(up.history().toSorted()).toEqual([
    `coordinator serves with http://127.0.0.1:9090 node:gpu-7=1.2 ${join(workingDir, 'data')} nats://127.0.0.1:4222 ${join(workingDir, 'ca.pem')} 3`,
    'node-1 started with join node-1, 4 GPUs',
    'node-2 started with join node-2, 4 GPUs',
  ]);
  expect(JSON.parse(readFileSync(up.context.environment.lastUpPath, 'utf8'))).toEqual({ dataDir });

  up.pressCtrlC();
  expect(await up.ended).toBe(exitCodes.ok);
  expect(up.stderr()).toBe('Stopping. No job is running.\n');
  const stops = up.history().slice(3);
  expect(stops.toSorted()).toEqual(['coordinator stopped', 'node-1 stopped', 'node-2 stopped']);
  expect(stops.at(-1), 'agents part from a coordinator that still listens').toBe('coordinator stopped');

  const again = startUp(dataDir);
  await isUp(again);
  expect(again.history().slice(6)).toEqual([
    'coordinator serves',
    'node-1 started with its credential, detected GPUs',
  ]);
});

test.each([
  [0, true],
  [1000, false],
])('started by uid %i, up tells whether jobs run as root: %s', async (uid, isRoot) => {
  const up = startUpAs(uid, temporaryDir(), '--gpus', '0');
  await isUp(up);
  expect(up.stdout().includes('Jobs without an image run as root')).toBe(isRoot);
  up.pressCtrlC();
  await up.ended;
});

test('an agent whose credential has expired while the machine was off joins anew', async () => {
  const dataDir = temporaryDir();
  const up = startUp(dataDir, '--gpus', '0');
  await isUp(up);
  up.pressCtrlC();
  await up.ended;
  const before = up.history().length;
  writeFileSync(join(dataDir, 'agents/node-1/expired'), '');
  const again = startUp(dataDir, '--gpus', '0');
  await isUp(again);
  expect(again.history().slice(before)).toEqual([
    'coordinator serves',
    'node-1 started with join node-1, 0 GPUs',
  ]);
});

/** What a daemon was given behind this flag. */
function given(flag: string, path: string): string {
  const flags: readonly string[] = JSON.parse(readFileSync(path, 'utf8'));
  return flags[flags.indexOf(flag) + 1] ?? '';
}

test('a single agent has a page for Prometheus, several have none of their own', async () => {
  const alone = temporaryDir();
  const up = startUp(alone);
  await isUp(up);
  expect(given('--metrics', join(alone, 'agents/node-1/flags'))).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
  expect(up.stdout()).toContain(
    `For Prometheus: http://${given('--http', join(alone, 'coordinator.flags'))}/metrics\n`,
  );
  expect(up.stderr()).toBe('');

  const several = temporaryDir();
  const off = startUp(several, '--nodes', '2', '--http', 'off');
  await isUp(off);
  expect(given('--metrics', join(several, 'agents/node-2/flags'))).toBe('off');
  expect(given('--http', join(several, 'coordinator.flags'))).toBe('off');
  expect(off.stdout()).not.toContain('Prometheus');
});

test('jobs that run are named when it stops', async () => {
  const dataDir = temporaryDir();
  writeFileSync(join(dataDir, 'busy'), '');
  const up = startUp(dataDir);
  await isUp(up);
  up.pressCtrlC();
  await up.ended;
  expect(up.stderr()).toBe(
    [
      'Stopping. 1 job keeps running:',
      '  job_0123456789ab  train',
      'The next `muster up` reattaches to it; `muster stop ID` then ends one.',
      '',
    ].join('\n'),
  );
});

test('a child that ends unasked is started again, and up says so', async () => {
  const dataDir = temporaryDir();
  const up = startUp(dataDir);
  await isUp(up);
  const pidPath = join(dataDir, 'agents/node-1/online');
  const before = readFileSync(pidPath, 'utf8');
  process.kill(Number(before), 'SIGKILL');
  await waitFor('a new agent', () => readFileSync(pidPath, 'utf8') !== before);
  expect(up.stderr()).toBe('node-1 ended: SIGKILL; starting it again in 1 s\n');
});

test('a coordinator that refuses to start ends up, in its own words', async () => {
  const dataDir = temporaryDir();
  writeFileSync(join(dataDir, 'refuse'), '127.0.0.1:7070 is in use');
  const up = startUp(dataDir);
  expect(await up.ended).toBe(exitCodes.refused);
  expect(up.stdout()).toBe('');
  expect(up.stderr()).toBe(
    `muster: the coordinator ended: 127.0.0.1:7070 is in use\nTry harder.\nIts log: ${dataDir}/coordinator.log\n`,
  );
});

test('a second up on the same data directory is refused and disturbs nothing', async () => {
  const dataDir = temporaryDir();
  const up = startUp(dataDir);
  await isUp(up);
  const second = startUp(dataDir);
  expect(await second.ended).toBe(exitCodes.refused);
  expect(second.stderr()).toBe(
    `muster: another \`muster up\` is running with ${dataDir}\nStop that one with \`muster down\`, or use another directory with --data.\n`,
  );
  expect(up.history()).toHaveLength(2);
});

test('several nodes without --gpus do not each offer the GPUs of this machine', async () => {
  const up = startUp(temporaryDir(), '--nodes', '2');
  await isUp(up);
  expect(up.history()).toContain('node-2 started with join node-2, 0 GPUs');
});

test('Ctrl-C during the start stops what was started', async () => {
  const up = startUp(temporaryDir(), '--nodes', '3');
  await waitFor('the coordinator', () => up.history().length > 0);
  up.pressCtrlC();
  expect(await up.ended).toBe(exitCodes.ok);
  const history = up.history();
  const starts = history.filter((line) => / (?:serves|started)/.test(line)).length;
  expect(history.filter((line) => line.endsWith(' stopped'))).toHaveLength(starts);
});

test('up says what ends it, and what that does to jobs', async () => {
  const dataDir = temporaryDir();
  const up = startUp(dataDir);
  await isUp(up);
  expect(up.stdout()).toContain(
    'Ctrl-C, or closing this terminal, stops Muster; running jobs keep running (with a lease: until it ends).\n' +
      'In the background instead: muster up --detach\n',
  );
  const behind = startUp(temporaryDir(), '--in-background');
  await isUp(behind);
  expect(behind.stdout()).toMatch(
    /runs in the background; closing this terminal does not end it\. Its log: \S+\/up\.log\nStop it: muster down /,
  );
});

test('down with nothing to stop says so', async () => {
  const dataDir = temporaryDir();
  const call = newCall(null);
  expect(await runCli(['down', '--data', dataDir], call.context)).toBe(exitCodes.ok);
  expect(call.stderr()).toBe(`No \`muster up\` is running with ${dataDir}.\n`);
});

test('who runs is known as long as it runs, and what was killed leaves nothing behind', async () => {
  const dataDir = temporaryDir();
  const up = startUp(dataDir);
  await isUp(up);
  await waitFor('it serves', () => readUpState(dataDir)?.address !== null);
  const state = readUpState(dataDir);
  expect(state).toMatchObject({ pid: process.pid, address: expect.stringMatching(/^127\.0\.0\.1:\d+$/) });
  writeFileSync(join(dataDir, 'up.json'), JSON.stringify({ ...state, startTicks: 1 }));
  expect(readUpState(dataDir)).toBeNull();
  up.pressCtrlC();
  await up.ended;
  expect(existsSync(join(dataDir, 'up.json'))).toBe(false);
});

test.each([
  [
    null,
    'Muster is down. Running jobs keep running, those with a lease until it ends. The next `muster up` reattaches to them.',
  ],
  [[], 'Muster is down. No job is running.'],
])('down says what is known of jobs: %j', (active, text) => {
  expect(downText(active, 'muster')).toBe(text);
});

test('of jobs with a lease the output names how long they keep running', () => {
  const attempts = [anAttempt({ leaseMs: 60_000 })];
  const jobs = [
    aJob({ state: 'running', attempts }),
    aJob({ state: 'running', attempts, spec: { ...aJob().spec, on_lease_expiry: 'kill' } }),
    aJob({ state: 'running', attempts: [anAttempt({ leaseMs: null })] }),
  ];
  expect(goodbyeText(jobs, 'muster').split('\n')).toEqual([
    'Stopping. 3 jobs keep running:',
    '  job_0123456789ab  train  (pauses 1 min after Muster has stopped, unless it is up again)',
    '  job_0123456789ab  train  (is killed 1 min after Muster has stopped, unless it is up again)',
    '  job_0123456789ab  train',
    'The next `muster up` reattaches to them; `muster stop ID` then ends one.',
  ]);
});
