/** A machine that systemd runs, from bare Debian to services with jobs. */
import { beforeAll, expect, test } from 'vitest';
import { repositoryDir } from '../support/command.ts';
import { type BootedMachine, bootMachine } from '../support/hosts/bootedMachine.ts';

const muster = '/opt/muster/packages/cli/bin/muster';

let machine: BootedMachine;

beforeAll(async () => {
  machine = await bootMachine('gpu-1', { '/opt/muster': repositoryDir });
  return () => machine.remove();
});

async function pidOf(unit: string): Promise<number> {
  return Number(await machine.must('systemctl', 'show', '--property=MainPID', '--value', unit));
}

test('two commands lead from a bare machine to a job; the second install changes nothing', async () => {
  const shown = await machine.must(
    muster,
    'install',
    'coordinator',
    'agent',
    '--set',
    'root_tasks=allow',
    '--dry-run',
  );
  expect((await machine.run('ls', '/etc/muster')).exitCode).not.toBe(0);
  const done = await machine.must(muster, 'install', 'coordinator', 'agent', '--set', 'root_tasks=allow');
  expect(done).toBe(shown);
  expect(await machine.must(muster, 'submit', '--follow', '--', 'hostname')).toContain('gpu-1\n');

  expect(await machine.must(muster, 'install', 'coordinator', 'agent')).toBe('');
  // Nothing is left of the token; the agent and the coordinator run as whom they should.
  expect((await machine.run('ls', '/etc/muster/join-token')).exitCode).not.toBe(0);
  const owner = await machine.must('ps', '-o', 'user=', '-p', String(await pidOf('muster-coordinator')));
  expect(owner.trim()).toBe('muster');
  expect(await machine.must('stat', '--format=%a %U', '/var/lib/muster')).toBe('700 muster\n');
});
