/** A process in a sandbox like that of the agent's unit, and doctor as that process and as the admin. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DoctorReport } from '@muster/agent/doctor/doctorReport';
import { Command } from 'commander';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir, waitFor } from '../../../../test/support/services.ts';
import { command as doctorCommand } from '../commands/doctor.ts';
import { doctorFlags, findService, privilegesOf } from './serviceView.ts';

const main = join(import.meta.dirname, '../main.ts');

/** @returns the state of each check by its name */
function doctor(...args: readonly string[]): Map<string, DoctorReport['checks'][number]> {
  const argv = [main, 'doctor', '--output', 'json', '--data', '/nowhere', ...args];
  const { checks } = JSON.parse(
    execFileSync('sh', ['-c', '"$@" || [ $? = 1 ]', 'sh', process.execPath, ...argv], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  ) as DoctorReport;
  return new Map(checks.map((check) => [check.name, check]));
}

test('what the sandbox hides is seen as the service sees it, and not as the admin does', async () => {
  const root = tempDir('service').path;
  const [shared, data, table, ready] = ['shared', 'data', 'table.yaml', 'ready'].map((name) =>
    join(root, name),
  );
  if (shared === undefined || data === undefined || table === undefined || ready === undefined)
    throw new Error();
  for (const path of [shared, data]) mkdirSync(path);
  writeFileSync(table, 'conditions: {}\n');
  const flags = ['--data', data, '--name', 'gpu-1', '--gpus', '2', '--label', 'network=eth0'];
  const agent = ['agent', ...flags, '--condition-table', table, '--root-tasks', 'refuse'];
  const sandbox =
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && touch "$1" && shift && ' +
    'exec setpriv --bounding-set -all,+dac_override,+kill --no-new-privs sh -c "read forever" "$@"';
  const child = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', sandbox, shared, ready, ...agent],
    {
      stdio: ['pipe', 'inherit', 'inherit'],
      env: {
        PATH: process.env['PATH'] ?? '',
        MUSTER_CHECKPOINT_ROOTS: shared,
        MUSTER_JOIN_TOKEN: 'not-for-doctor',
      },
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  await waitFor('it waits', () =>
    readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').includes('read forever'),
  );

  const own = doctor('--checkpoint-root', shared, '--gpus', '2');
  expect(own.get(shared)).toMatchObject({ area: 'checkpoints', state: 'ok' });
  const seen = doctor('--service', String(child.pid));
  expect(seen.get(shared)).toMatchObject({ area: 'checkpoints', state: 'problem' });
  expect(seen.get(shared)?.message).toContain('checkpoint_root');
  // With the agent's own flags.
  expect(seen.get(table)).toMatchObject({ state: 'ok' });
  expect(seen.get(data)?.message).toContain('can be written to');
  expect(seen.get('simulated')?.message).toContain('2 GPUs');
});

test('of the flags of an agent doctor takes those that it knows', () => {
  const sub = new Command();
  doctorCommand.define(sub);
  const argv = '/node main.mjs agent --guard service --data /d --name gpu-1 --kernel-log - --gpus=2 --cpus 8';
  expect(doctorFlags(argv.split(' '), sub.options)).toEqual([
    '--agent-data',
    '/d',
    '--name',
    'gpu-1',
    '--kernel-log',
    '-',
    '--gpus',
    '2',
  ]);
});

test('privileges are those of the process, and none beside', () => {
  const status =
    'Name:\tmuster\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\nCapBnd:\t0000000000000022\nNoNewPrivs:\t1\n';
  expect(privilegesOf(status).join(' ')).toBe(
    '--reuid 0 --regid 0 --clear-groups --inh-caps -all --bounding-set -all,+cap_1,+cap_5 --no-new-privs --',
  );
  const user =
    'Uid:\t61\t61\t61\t61\nGid:\t62\t62\t62\t62\nGroups:\t62 63 \nCapBnd:\t0000000000000000\nNoNewPrivs:\t0\n';
  expect(privilegesOf(user).join(' ')).toBe(
    '--reuid 61 --regid 62 --groups 62,63 --inh-caps -all --bounding-set -all --',
  );
});

test('where there is no such service, that is reported', async () => {
  await expect(findService('guard')).rejects.toThrow(
    '--service takes agent, or the pid of an agent; got "guard"',
  );
});
