/** `install` and `uninstall` on a system image: real files and accounts in a directory, with the system's own programs. */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { credentialFile } from '@muster/agent/session/credential';
import { fromNothing } from '@muster/agent/tasks/managerFixture';
import { TaskRecords } from '@muster/agent/tasks/records';
import type { JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { beforeAll, expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { joinedIn, joinTokenSource } from '../install/joinToken.ts';
import { installSteps, joinTokenPath, roleFacts } from '../install/roles.ts';
import { runCli } from '../program.ts';
import { newCall } from '../testing/testContext.ts';

/** A release in a place that services see, which the checkout may not be. */
const release = mkdtempSync('/dev/shm/muster-release-');
const programDir = join(release, 'dist');
beforeAll(() => {
  cpSync(join(import.meta.dirname, '../../../../deploy/systemd'), join(release, 'systemd'), {
    recursive: true,
  });
  return () => rmSync(release, { recursive: true });
});

function image(): string {
  const { path } = tempDir('image');
  mkdirSync(join(path, 'etc'), { recursive: true });
  writeFileSync(join(path, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  writeFileSync(join(path, 'etc/group'), 'root:x:0:\n');
  return path;
}

async function muster(...argv: readonly string[]) {
  const { context, stdout, stderr } = newCall(null, {
    environment: { programDir, uid: 0, hostname: 'GPU 1' },
  });
  const exitCode = await runCli(argv, context);
  return { exitCode, lines: stdout().split('\n').slice(0, -1), problem: stderr() };
}

const modeOf = (path: string) => `0${(lstatSync(path).mode & 0o7777).toString(8)}`;

test('an image gets accounts, settings, directories and units; the second time nothing changes', async () => {
  const root = image();
  const shown = await muster('install', 'coordinator', 'agent', '--root', root, '--dry-run');
  expect(shown.exitCode, shown.problem).toBe(exitCodes.ok);
  expect(existsSync(join(root, 'etc/muster'))).toBe(false);

  const done = await muster('install', 'agent', 'coordinator', '--root', root);
  expect(done.lines).toEqual(shown.lines);
  expect(done.lines).toEqual([
    'create the system user muster',
    'make the directory /etc/muster (0755, root)',
    'write /etc/muster/coordinator.yaml (0644, root)',
    'make the directory /var/lib/muster (0700, muster)',
    'write /etc/systemd/system/muster-coordinator.service (0644, root)',
    'enable muster-coordinator.service',
    'create the system user muster-tasks',
    'make the directory /var/lib/muster-tasks (0700, muster-tasks)',
    'write /etc/muster/agent.yaml (0644, root)',
    'make the directory /var/lib/muster-agent (0711, root)',
    'write /etc/systemd/system/muster-tasks.service (0644, root)',
    'write /etc/systemd/system/muster-guard.service (0644, root)',
    'write /etc/systemd/system/muster-agent.service (0644, root)',
    'enable muster-tasks.service',
    'enable muster-guard.service',
    'enable muster-agent.service',
  ]);
  expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).toMatch(/^muster:.*:\/var\/lib\/muster:.*nologin$/m);
  expect(modeOf(join(root, 'var/lib/muster'))).toBe('0700');
  expect(lstatSync(join(root, 'var/lib/muster')).uid).not.toBe(0);
  expect(readFileSync(join(root, 'etc/muster/agent.yaml'), 'utf8')).toMatch(/^name: gpu-1$/m);

  const again = await muster('install', 'coordinator', 'agent', '--root', root);
  expect([again.lines, again.problem]).toEqual([[], 'Nothing to change.\n']);
});

test('a token for an agent that runs restarts it, as it reads tokens when it starts', () => {
  const wish = { config: '', launcher: '/x', derived: [], allow: null, isImage: false };
  const units = new Map(roleFacts.agent.units.map((unit) => [unit, '']));
  const steps = installSteps({ ...wish, units, role: 'agent', joinToken: 'a token' });
  const restarted = steps.filter(
    (step) => step.kind === 'running' && step.restartFor.includes(joinTokenPath),
  );
  // Not the guard: it is the parent of tasks.
  expect(restarted).toEqual([expect.objectContaining({ unit: 'muster-agent.service' })]);
});

test('a token from a call that failed is replaced where one can be made, and removed once the agent runs', () => {
  const { path } = tempDir('agent');
  const facts = { isImage: false, hasCoordinator: true, hasTokenFile: true };
  const sourceNow = (given = {}) => joinTokenSource({ ...facts, joined: joinedIn(path), ...given });
  expect(sourceNow()).toBe('made');
  expect(sourceNow({ hasCoordinator: false })).toBe('own');
  expect(sourceNow({ hasCoordinator: false, hasTokenFile: false })).toBe('missing');
  expect(sourceNow({ isImage: true })).toBe('own');
  const stored = { nodeName: 'gpu-1', credential: 'x', joined: false, caCertificate: null };
  credentialFile(path).write(stored);
  expect(sourceNow()).toBe('made');
  credentialFile(path).write({ ...stored, joined: true });
  expect(sourceNow()).toBe('own');

  const units = new Map(roleFacts.agent.units.map((unit) => [unit, '']));
  const wish = { config: '', launcher: '/x', derived: [], allow: null, units, joinToken: null };
  const lastStep = (isImage: boolean) => installSteps({ ...wish, role: 'agent', isImage }).at(-1);
  expect(lastStep(false)).toEqual({ kind: 'absent', path: joinTokenPath });
  expect(lastStep(true)).toMatchObject({ kind: 'running' });
});

test('settings that are there stay, those that are named change, and the sandbox follows', async () => {
  const root = image();
  await muster('install', 'coordinator', 'agent', '--root', root);
  const path = join(root, 'etc/muster/agent.yaml');
  writeFileSync(path, `${readFileSync(path, 'utf8')}\n# Mine.\nlabel: [rack=7] # the third row\n`);

  const changed = await muster(
    'install',
    'agent',
    '--root',
    root,
    '--set',
    'checkpoint_root=/var/tmp/ck',
    '--set',
    'label=rack=8',
  );
  expect(changed.lines.join('\n')).toContain('+ label: rack=8 # the third row');
  expect(readFileSync(path, 'utf8')).toContain('# Mine.\n');
  const dropIn = join(root, 'etc/systemd/system/muster-agent.service.d/muster.conf');
  expect(readFileSync(dropIn, 'utf8')).toContain('[Service]\nReadWritePaths=-/var/tmp/ck\nPrivateTmp=no\n');

  writeFileSync(path, readFileSync(path, 'utf8').replace(/^checkpoint_root:.*$/m, ''));
  const closed = await muster('install', 'agent', '--root', root);
  expect(closed.lines).toEqual(['remove /etc/systemd/system/muster-agent.service.d/muster.conf']);
});

test.each([
  [['router'], 'the roles of a machine are coordinator and agent; got "router"'],
  [['agent'], 'which coordinator does the agent join?'],
  [['coordinator', '--set', 'lissen=1'], 'unknown key "lissen"; did you mean listen?'],
  [['coordinator', '--set', 'lease=soon'], 'lease takes a duration'],
  [['coordinator', '--set', 'lease'], '--set takes KEY=VALUE'],
  [['coordinator', 'agent', '--set', 'log_level=debug'], 'log_level is a key of both roles'],
  [['coordinator', '--name', 'gpu-1'], '--name is a setting of the agent, which is not installed'],
  [['coordinator', '--listen', '0.0.0.0:7070'], 'the unit lets only this machine in and out'],
  [['agent', '--coordinator', 'head:7070'], 'the unit lets only this machine in and out'],
])('%j is refused before anything changes', async (argv, message) => {
  const root = image();
  const { exitCode, lines, problem } = await muster('install', ...argv, '--root', root);
  expect(problem).toContain(message);
  expect([exitCode, lines]).toEqual([exitCodes.usage, []]);
  expect(existsSync(join(root, 'etc/muster'))).toBe(false);
});

test('what a person changed by hand in a unit or a mode is put right, and shown', async () => {
  const root = image();
  await muster('install', 'coordinator', '--root', root);
  const unit = join(root, 'etc/systemd/system/muster-coordinator.service');
  writeFileSync(unit, readFileSync(unit, 'utf8').replace('UMask=0077', 'UMask=0000'), { mode: 0o644 });
  const { lines } = await muster('install', 'coordinator', '--root', root);
  expect(lines).toEqual(
    [
      'change /etc/systemd/system/muster-coordinator.service\n    - UMask=0000\n    + UMask=0077'.split('\n'),
    ].flat(),
  );
});

test('uninstall removes the services and keeps settings and data; --purge asks, then removes these too', async () => {
  const root = image();
  await muster('install', 'coordinator', 'agent', '--root', root, '--allow', '10.0.0.0/8');
  const removed = await muster('uninstall', '--root', root);
  expect(removed.exitCode, removed.problem).toBe(exitCodes.ok);
  expect(existsSync(join(root, 'etc/systemd/system/muster-agent.service'))).toBe(false);
  expect(existsSync(join(root, 'etc/muster/agent.yaml'))).toBe(true);

  // The networks that were allowed are kept like the settings.
  const back = await muster('install', 'coordinator', '--root', root, '--listen', '0.0.0.0:7070');
  expect(back.exitCode, back.problem).toBe(exitCodes.ok);

  const asked = await muster('uninstall', '--purge', '--root', root);
  expect(asked.problem).toContain('This removes /var/lib/muster and /var/lib/muster-agent');
  const purged = await muster('uninstall', '--purge', '--force', '--root', root);
  expect(purged.exitCode, purged.problem).toBe(exitCodes.ok);
  for (const path of [
    'etc/muster',
    'var/lib/muster',
    'var/lib/muster-agent',
    'etc/systemd/system/muster-agent.service.d',
  ])
    expect([path, existsSync(join(root, path))]).toEqual([path, false]);
  expect((await muster('uninstall', '--purge', '--root', root)).problem).toBe('Nothing to remove.\n');
});

test('the agent of a user is removed with consent while tasks run', async () => {
  const home = tempDir('home').path;
  const dataDir = join(home, '.local/share/muster-agent');
  mkdirSync(dataDir, { recursive: true });
  const task = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
  const spec = decodeJobSpec('{"name":"test","command":["true"]}');
  const assignment = { task, spec, nodeCount: 1, gpuUuids: [], array: null, ...fromNothing(task) };
  const records = new TaskRecords(join(dataDir, 'tasks'));
  await records.create({ assignment, bootId: 'boot-1', phase: { kind: 'assigned' } });
  const uninstall = async (...flags: readonly string[]) => {
    const { context, stderr } = newCall(null, { environment: { programDir, uid: 1000, home } });
    const exitCode = await runCli(['uninstall', 'agent', '--user', '--purge', ...flags], context);
    return { exitCode, problem: stderr() };
  };
  const asked = await uninstall();
  expect(asked.problem).toContain(`This ends 1 running task and removes ${dataDir}`);
  expect(asked.problem).toContain('uninstall agent --user --purge --force');
  await records.remove(task);
  expect((await uninstall()).problem, 'data alone is asked for as well').toContain(`This removes ${dataDir}`);
  expect((await uninstall('--dry-run')).problem).toContain('exclude --user');
  expect((await uninstall('--root', home)).problem).toContain('exclude --user');
  expect(existsSync(dataDir)).toBe(true);
  expect(await uninstall('--force')).toEqual({ exitCode: exitCodes.ok, problem: '' });
  expect(existsSync(dataDir)).toBe(false);
});

test('only root changes a machine, and a service has to see its program', async () => {
  const { context, stderr } = newCall(null, { environment: { programDir, uid: 1000 } });
  expect(await runCli(['install', 'coordinator'], context)).not.toBe(exitCodes.ok);
  expect(stderr()).toContain('install changes this machine, which takes root');

  const hidden = newCall(null, { environment: { programDir: '/run/muster/dist', uid: 0 } });
  expect(await runCli(['install', 'coordinator', '--dry-run'], hidden.context)).not.toBe(exitCodes.ok);
  expect(hidden.stderr()).toContain('services cannot run /run/muster/packages/cli/bin/muster');
});
