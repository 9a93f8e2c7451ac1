/** A machine that systemd runs, installed from an archive: upgraded under a running task, and back from releases that do not start. */
import { beforeAll, expect, test } from 'vitest';
import { type BootedMachine, bootMachine } from '../support/hosts/bootedMachine.ts';
import { patienceMs } from '../support/patience.ts';
import { Releases } from '../support/releases.ts';
import { waitFor } from '../support/services.ts';

const muster = '/usr/local/bin/muster';

let machine: BootedMachine;
let archives: { readonly first: string; readonly next: string; readonly sickAgent: string };

beforeAll(async () => {
  const releases = await Releases.make();
  archives = {
    first: await releases.archive({ version: '0.1.0' }),
    next: await releases.archive({ version: '0.2.0' }),
    // It would change the form of the store, and its agent ends at once.
    sickAgent: await releases.archive({
      version: '0.3.0',
      schemaStep: 1,
      prelude: `if (process.argv[2] === 'agent') { console.error('no such luck'); process.exit(1); }\n`,
    }),
  };
  machine = await bootMachine('gpu-1', { '/media/releases': releases.folder });
  return () => machine.remove();
});

const taskPid = () => machine.must('pgrep', '-x', 'sleep');

interface Answer {
  readonly nodes: readonly { readonly state: string; readonly agentVersion: string }[];
  readonly jobs: readonly { readonly id: string; readonly name: string; readonly state: string }[];
}

/** Longer than other programs of tests may take: on a machine that does other work. */
async function upgrade(name: string): Promise<{ readonly exitCode: number; readonly said: string }> {
  await machine.must('rm', '-f', '/tmp/upgrade.ended');
  const script = `${muster} upgrade /media/releases/${name} --wait 10m; echo $? > /tmp/upgrade.ended`;
  await machine.must(
    'systemd-run',
    '--quiet',
    '--collect',
    '--property=StandardError=file:/tmp/upgrade.said',
    '/bin/sh',
    '-c',
    script,
  );
  const ended = async () => (await machine.run('cat', '/tmp/upgrade.ended')).stdout;
  const exitCode = Number(await waitFor('the end of the upgrade', ended, { timeoutMs: 4 * patienceMs }));
  return { exitCode, said: await machine.must('cat', '/tmp/upgrade.said') };
}

async function ask(...argv: readonly string[]): Promise<Answer> {
  return JSON.parse(await machine.must(muster, ...argv, '-o', 'json')) as Answer;
}

test('an unpacked archive installs itself, and may go', async () => {
  await machine.must('sh', '-ec', `mkdir /tmp/new; tar -xzf /media/releases/${archives.first} -C /tmp/new`);
  await machine.must('sh', '-ec', '/tmp/new/*/bin/muster install coordinator agent; rm -r /tmp/new');
  expect(await machine.must(muster, '--version')).toBe('muster 0.1.0\n');
  expect(await machine.must(muster, 'install', 'coordinator', 'agent')).toBe('');
  await machine.must(muster, 'submit', '--name', 'long', '--', 'sleep', '100000');
  await waitFor('the task', taskPid);
});

test('an upgrade leaves the task alone, and loses no submit', async () => {
  const before = await taskPid();
  const upgrading = upgrade(archives.next);
  const state = { isOver: false };
  const over = upgrading.finally(() => (state.isOver = true));
  const accepted: string[] = [];
  while (!state.isOver) {
    const { exitCode, stdout } = await machine.run(muster, 'submit', '-o', 'json', '--', 'true');
    if (exitCode === 0) accepted.push(...(JSON.parse(stdout) as { readonly jobIds: string[] }).jobIds);
  }
  const { exitCode, said } = await over;
  expect([exitCode, said]).toEqual([0, expect.stringContaining('so their guard stays 0.1.0')]);
  expect(await taskPid()).toBe(before);
  const { jobs } = await ask('jobs', '--all', '--limit', '1000');
  expect(jobs).toContainEqual(expect.objectContaining({ name: 'long', state: 'running' }));
  expect(jobs.map(({ id }) => id)).toEqual(expect.arrayContaining(accepted));
  expect((await ask('nodes')).nodes).toEqual([
    expect.objectContaining({ state: 'online', agentVersion: '0.2.0' }),
  ]);
  // The guard has the task, so it keeps the release that it runs.
  expect(await machine.must('ls', '/opt/muster')).toBe('0.1.0\n0.2.0\ncurrent\n');
});

test('a release whose agent does not start is left again, with the store as it was', async () => {
  const before = await taskPid();
  const { exitCode, said } = await upgrade(archives.sickAgent);
  expect(said).toContain('the agent is not healthy');
  expect(said).toContain('the old release runs again');
  expect(said).toContain('no such luck');
  expect(exitCode).not.toBe(0);
  expect(await machine.must('readlink', '/opt/muster/current')).toBe('0.2.0\n');
  expect(await taskPid()).toBe(before);
  await waitFor('the node', async () => (await ask('nodes')).nodes[0]?.state === 'online');
  expect((await ask('jobs', '--all', '--limit', '1000')).jobs).toContainEqual(
    expect.objectContaining({ name: 'long', state: 'running' }),
  );
});
