/** A machine that systemd runs: from bare Debian to services with jobs, through kills and a reboot, and back. */
import { beforeAll, expect, test } from 'vitest';
import { repositoryDir } from '../support/command.ts';
import { type BootedMachine, bootMachine } from '../support/hosts/bootedMachine.ts';
import { waitFor } from '../support/services.ts';

const muster = '/opt/muster/packages/cli/bin/muster';
const units = ['muster-agent', 'muster-coordinator', 'muster-guard'] as const;

let machine: BootedMachine;

beforeAll(async () => {
  machine = await bootMachine('gpu-1', { '/opt/muster': repositoryDir });
  return () => machine.remove();
});

interface JobState {
  readonly id: string;
  readonly state: string;
  readonly name: string;
}

async function jobs(): Promise<readonly JobState[]> {
  const { jobs: listed } = JSON.parse(await machine.must(muster, 'jobs', '--all', '-o', 'json')) as {
    jobs: readonly JobState[];
  };
  return listed;
}

async function pidOf(unit: string): Promise<number> {
  return Number(await machine.must('systemctl', 'show', '--property=MainPID', '--value', unit));
}

test('two commands lead from a bare machine to a job; the second install changes nothing', async () => {
  const shown = await machine.must(muster, 'install', 'coordinator', 'agent', '--dry-run');
  expect((await machine.run('ls', '/etc/muster')).exitCode).not.toBe(0);
  const done = await machine.must(muster, 'install', 'coordinator', 'agent');
  expect(done).toBe(shown);
  expect(await machine.must(muster, 'submit', '--follow', '--', 'sh', '-c', 'hostname; id -un')).toContain(
    'gpu-1\nmuster-tasks\n',
  );

  expect(await machine.must(muster, 'install', 'coordinator', 'agent')).toBe('');
  // Nothing is left of the token; the coordinator has its own user.
  expect((await machine.run('ls', '/etc/muster/join-token')).exitCode).not.toBe(0);
  const owner = await machine.must('ps', '-o', 'user=', '-p', String(await pidOf('muster-coordinator')));
  expect(owner.trim()).toBe('muster');
  expect(await machine.must('stat', '--format=%a %U', '/var/lib/muster')).toBe('700 muster\n');
});

test('a job outlives kills of the agent and the guard, and the services a reboot', async () => {
  await machine.must(muster, 'submit', '--name', 'long', '--max-attempts', '9', '--', 'sleep', '100000');
  const taskPids = () => machine.must('pgrep', '-x', 'sleep');
  const before = await waitFor('the task', taskPids);
  for (const unit of ['muster-agent', 'muster-guard']) {
    const pid = await pidOf(unit);
    await machine.must('kill', '-KILL', String(pid));
    await waitFor(`${unit} again`, async () => {
      const now = await pidOf(unit);
      return now > 0 && now !== pid;
    });
  }
  await waitFor('the agent', async () => {
    const { nodes } = JSON.parse(await machine.must(muster, 'nodes', '-o', 'json')) as {
      nodes: readonly { readonly state: string }[];
    };
    return nodes.every(({ state }) => state === 'online');
  });
  expect(await taskPids()).toBe(before);
  expect(await jobs()).toContainEqual(expect.objectContaining({ name: 'long', state: 'running' }));

  // Whoever uninstalls is asked first.
  const refused = await machine.run(muster, 'uninstall');
  expect(refused.stderr).toContain('This ends 1 running task');
  expect(refused.exitCode).not.toBe(0);

  await machine.reboot();
  for (const unit of units)
    await waitFor(unit, async () => (await machine.must('systemctl', 'is-active', unit)) === 'active\n');
  expect(await machine.must(muster, 'submit', '--follow', '--', 'echo', 'after the reboot')).toContain(
    'after the reboot',
  );
});

test('uninstall leaves nothing but the data, and --purge not even this', async () => {
  await machine.must(muster, 'uninstall', '--force');
  expect(await machine.must('systemctl', 'list-units', '--all', '--plain', '--no-legend', 'muster*')).toBe(
    '',
  );
  expect((await machine.run('pgrep', '-f', 'muster')).stdout).toBe('');
  expect(await machine.must('ls', '/etc/muster')).toBe('agent.yaml\ncoordinator.yaml\n');

  await machine.must(muster, 'uninstall', '--purge', '--force');
  const left = await machine.run(
    'find',
    '/etc',
    '/var',
    '-xdev',
    '-name',
    '*muster*',
    '-not',
    '-path',
    '/var/log/*',
  );
  expect(left.stdout).toBe('');
});
