/** A machine that systemd runs: from bare Debian and a deb to services with jobs, through kills and a reboot, and back. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { makePackages } from '../../scripts/package.mjs';
import { type BootedMachine, bootMachine } from '../support/hosts/bootedMachine.ts';
import { tempDir, waitFor } from '../support/services.ts';

const muster = 'muster';
const units = ['muster-agent', 'muster-coordinator', 'muster-guard', 'muster-tasks'] as const;
const release = {
  version: '0.1.0',
  arch: process.arch as 'x64' | 'arm64',
  commit: '0123456789abcdef0123456789abcdef01234567',
  epochS: 1_700_000_000,
};
/** What is tested does not depend on the compression. */
const quickly = { gzip: 1, xz: 0, interrupted: new AbortController().signal };

/** On the machine. */
let deb: string;
let machine: BootedMachine;

beforeAll(async () => {
  const { path } = tempDir('release');
  const [name = ''] = await makePackages(path, release, quickly, ['deb']);
  deb = join('/srv/release', name);
  machine = await bootMachine('gpu-1', { '/srv/release': path });
  return () => machine.remove();
});

function dpkg(...argv: readonly string[]) {
  const variables = ['DEBIAN_FRONTEND=noninteractive', 'MUSTER_INSTALL=coordinator agent'];
  return machine.run('env', ...variables, 'dpkg', ...argv);
}

async function mustDpkg(...argv: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await dpkg(...argv);
  expect(exitCode, stdout + stderr).toBe(0);
  return stdout;
}

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

test('two commands lead from a bare machine and the deb to a job; an install after that changes nothing', async () => {
  expect(await mustDpkg('--install', deb)).toContain('start muster-agent.service\n');
  expect(await machine.must(muster, 'submit', '--follow', '--', 'sh', '-c', 'hostname; id -un')).toContain(
    'gpu-1\nmuster-tasks\n',
  );

  // Through the umask of the agent's unit, which lets nobody in.
  await machine.must('sh', '-c', `printf 'a secret of the lab' | ${muster} secret set lab`);
  const reading = 'sha256sum <"$MUSTER_SECRETS_DIR/lab"; printf %s "$LAB" | sha256sum';
  const secrets = ['--secret', 'lab', '--secret', 'LAB=lab'];
  const digest = createHash('sha256').update('a secret of the lab').digest('hex');
  expect(await machine.must(muster, 'submit', '--follow', ...secrets, '--', 'sh', '-c', reading)).toContain(
    `${digest}  -\n${digest}  -\n`,
  );

  expect(await machine.must(muster, 'install', 'coordinator', 'agent')).toBe('');
  // Nothing is left of the token; the coordinator has its own user.
  expect((await machine.run('ls', '/etc/muster/join-token')).exitCode).not.toBe(0);
  const owner = await machine.must('ps', '-o', 'user=', '-p', String(await pidOf('muster-coordinator')));
  expect(owner.trim()).toBe('muster');
  expect(await machine.must('stat', '--format=%a %U', '/var/lib/muster')).toBe('700 muster\n');
});

test('a job outlives kills of the agent and the guard and an upgrade; the services outlive a reboot', async () => {
  await machine.must(muster, 'submit', '--name', 'long', '--max-attempts', '9', '--', 'sleep', '100000');
  const taskPids = () => machine.must('pgrep', '-fx', 'sleep 100000');
  const before = await waitFor('the task', taskPids);
  for (const unit of ['muster-agent', 'muster-guard']) {
    const pid = await pidOf(unit);
    await machine.must('kill', '-KILL', String(pid));
    await isAnother(unit, pid);
  }
  await isOnline();
  const [agent, guard] = [await pidOf('muster-agent'), await pidOf('muster-guard')];
  // A package of which only a part has arrived leaves the one that is installed as it is.
  await machine.must('sh', '-c', `head --bytes=20000000 ${deb} > /var/tmp/part.deb`);
  const part = await dpkg('--install', '/var/tmp/part.deb');
  expect(part.exitCode).not.toBe(0);
  expect(part.stderr).toContain('unexpected end of file');
  const state = await machine.must('dpkg-query', '--show', '--showformat=${Status}', 'muster');
  expect(state).toBe('install ok installed');
  expect(await machine.must('find', '/usr/lib/muster', '-name', '*.dpkg-*')).toBe('');
  expect(await pidOf('muster-agent')).toBe(agent);
  await mustDpkg('--install', deb);
  await isAnother('muster-agent', agent);
  expect(await pidOf('muster-guard')).toBe(guard);
  await isOnline();
  expect(await taskPids()).toBe(before);
  expect(await jobs()).toContainEqual(expect.objectContaining({ name: 'long', state: 'running' }));

  // Anyone who removes it is asked first.
  const refused = await dpkg('--remove', 'muster');
  expect(refused.stderr).toContain('This ends 1 running task');
  expect(refused.exitCode).not.toBe(0);

  await machine.reboot();
  for (const unit of units)
    await waitFor(unit, async () => (await machine.must('systemctl', 'is-active', unit)) === 'active\n');
  expect(await machine.must(muster, 'submit', '--follow', '--', 'echo', 'after the reboot')).toContain(
    'after the reboot',
  );
});

test('removing the package leaves nothing but the data, and purging it not even this', async () => {
  const running = () => machine.run('pgrep', '-fx', 'sleep 100000');
  await machine.must(muster, 'submit', '--', 'sleep', '100000');
  await waitFor('a task', async () => (await running()).exitCode === 0);
  await machine.must(muster, 'uninstall', '--force');
  expect((await running()).stdout).toBe('');
  await mustDpkg('--remove', 'muster');
  expect(await machine.must('systemctl', 'list-units', '--all', '--plain', '--no-legend', 'muster*')).toBe(
    '',
  );
  expect((await machine.run('pgrep', '-f', 'muster')).stdout).toBe('');
  expect((await machine.run('ls', '/usr/bin/muster', '/usr/lib/muster')).stdout).toBe('');
  expect(await machine.must('ls', '/etc/muster')).toBe('agent.yaml\ncoordinator.yaml\n');

  await mustDpkg('--purge', 'muster');
  // Accounts of other tests have their limits in files of this machine, which lie below the booted one's.
  const others = ['/var/log/*', '/etc/security/limits.d/*'].flatMap((path) => ['-not', '-path', path]);
  // So do the containers and images of a container engine that has run on this machine.
  const engines = ['-path', '/var/lib/docker', '-o', '-path', '/var/lib/containerd'];
  const named = ['-xdev', '(', ...engines, ')', '-prune', '-o', '-name', '*muster*', ...others, '-print'];
  expect(await machine.must('find', '/etc', '/usr', '/var', ...named)).toBe('');
});

async function isAnother(unit: string, pid: number): Promise<void> {
  await waitFor(`${unit} again`, async () => {
    const now = await pidOf(unit);
    return now > 0 && now !== pid;
  });
}

async function isOnline(): Promise<void> {
  await waitFor('the agent', async () => {
    const { nodes } = JSON.parse(await machine.must(muster, 'nodes', '-o', 'json')) as {
      nodes: readonly { readonly state: string }[];
    };
    return nodes.every(({ state }) => state === 'online');
  });
}
