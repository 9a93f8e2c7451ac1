/** A machine that systemd runs, installed from an archive: upgraded under a running task, back from releases that do not start, killed on the way. */
import { beforeAll, expect, test } from 'vitest';
import { type BootedMachine, bootMachine } from '../support/hosts/bootedMachine.ts';
import { patienceMs } from '../support/patience.ts';
import { Releases } from '../support/releases.ts';
import { waitFor } from '../support/services.ts';

const muster = '/usr/local/bin/muster';
const dataDir = '/var/lib/muster';

/** While this file is there, an agent that would end does not start either, and stays. */
const hangFile = '/etc/hang';
const sickAgent = `if (process.argv[2] === 'agent') {
  if (process.getBuiltinModule('node:fs').existsSync('${hangFile}')) await new Promise(() => setInterval(() => {}, 60_000));
  console.error('no such luck');
  process.exit(1);
}
`;

let machine: BootedMachine;
let archives: Readonly<Record<'first' | 'next' | 'sickAgent' | 'sickCoordinator', string>>;

beforeAll(async () => {
  const releases = await Releases.make();
  archives = {
    first: await releases.archive({ version: '0.1.0' }),
    next: await releases.archive({ version: '0.2.0' }),
    // Both would change the form of the store. The first does so before it is found to be sick.
    sickAgent: await releases.archive({
      version: '0.3.0',
      hasNewSchema: true,
      prelude: sickAgent,
    }),
    sickCoordinator: await releases.archive({
      version: '0.3.1',
      hasNewSchema: true,
      prelude: `if (process.argv[2] === 'coordinator') { console.error('no such luck'); process.exit(1); }\n`,
    }),
  };
  machine = await bootMachine('gpu-1', { '/media/releases': releases.folder });
  // A disk that a test can fill.
  await machine.must('sh', '-ec', `mkdir -p ${dataDir}; mount -t tmpfs -o size=128m tmpfs ${dataDir}`);
  return () => machine.remove();
});

const taskPid = () => machine.must('pgrep', '-fx', 'sleep 100000');

interface Answer {
  readonly nodes: readonly { readonly state: string; readonly agentVersion: string }[];
  readonly jobs: readonly { readonly id: string; readonly name: string; readonly state: string }[];
}

/** Longer than other programs of tests may take: on a machine that does other work. */
async function upgrade(name: string): Promise<{ readonly exitCode: number; readonly output: string }> {
  await beginUpgrade(name);
  const ended = async () => (await machine.run('cat', '/tmp/upgrade.ended')).stdout;
  const exitCode = Number(await waitFor('the end of the upgrade', ended, { timeoutMs: 4 * patienceMs }));
  return { exitCode, output: await outputSoFar() };
}

async function beginUpgrade(name: string): Promise<void> {
  await machine.must('rm', '-f', '/tmp/upgrade.ended', '/tmp/upgrade.stderr');
  const script = `${muster} upgrade /media/releases/${name} --wait 10m; echo $? > /tmp/upgrade.ended`;
  const unit = ['--quiet', '--collect', '--property=StandardError=file:/tmp/upgrade.stderr'];
  await machine.must('systemd-run', ...unit, '/bin/sh', '-c', script);
}

const outputSoFar = () => machine.must('cat', '/tmp/upgrade.stderr');

async function ask(...argv: readonly string[]): Promise<Answer> {
  return JSON.parse(await machine.must(muster, ...argv, '-o', 'json')) as Answer;
}

test('an unpacked archive installs itself, and may go', async () => {
  await machine.must('sh', '-ec', `mkdir /tmp/new; tar -xzf /media/releases/${archives.first} -C /tmp/new`);
  const install = '/tmp/new/*/bin/muster install coordinator';
  await machine.must('sh', '-ec', `${install} --set reserve_mb=8; ${install} agent; rm -r /tmp/new`);
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
  const { exitCode, output } = await over;
  expect([exitCode, output]).toEqual([0, expect.stringContaining('so their guard keeps its release')]);
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

test('a disk that becomes full once the store is copied leaves the old release, and loses nothing', async () => {
  const before = await taskPid();
  const job = await machine.must(muster, 'submit', '--', 'true');
  const fill = `until [ -e ${dataDir}/before-0.3.0.backup ]; do sleep 0.02; done; exec head -c 1G /dev/zero`;
  await machine.must('systemd-run', '--quiet', '--collect', 'sh', '-c', `${fill} > ${dataDir}/filler`);
  const { exitCode, output } = await upgrade(archives.sickAgent);
  expect(output).toMatch(/the coordinator is not healthy: .*\/var\/lib\/muster has .* free at least \d+ MiB/);
  expect(output).toContain('the old release runs again');
  expect(exitCode).not.toBe(0);
  await isAsBefore(before, job.trim());
  // The store was never changed, so none was put back; what is left of the copy goes with the next one.
  const left = await machine.must('ls', dataDir);
  expect(left).not.toContain('replaced-');
  expect(left).not.toContain('.reserve');
  await machine.must('rm', `${dataDir}/filler`);
});

test.each([
  ['agent', 'sickAgent'],
  ['coordinator', 'sickCoordinator'],
] as const)(
  'a release whose %s does not start is left again, with the store as it was',
  async (role, name) => {
    const before = await taskPid();
    const jobs = await machine.must(muster, 'submit', '--', 'true');
    const ended = await upgrade(archives[name]);
    expect(ended.output).toContain(`the ${role} is not healthy: it has ended 3 times`);
    expect(ended.output).toContain('the old release runs again');
    expect(ended.output).toContain('no such luck');
    expect(ended.exitCode).not.toBe(0);
    await isAsBefore(before, jobs.trim());
  },
);

/** The release, the task and a job of the time before: an older release refuses a store that a newer one has opened. */
async function isAsBefore(pid: string, jobId: string): Promise<void> {
  expect(await machine.must('readlink', '/opt/muster/current')).toBe('0.2.0\n');
  expect(await machine.must('ls', '-A', '/opt/muster')).not.toContain('.upgrading.json');
  expect(await taskPid()).toBe(pid);
  await waitFor('the node', async () => {
    const [node] = (await ask('nodes')).nodes;
    return node?.state === 'online' && node.agentVersion === '0.2.0';
  });
  const { jobs } = await ask('jobs', '--all', '--limit', '1000');
  expect(jobs).toContainEqual(expect.objectContaining({ name: 'long', state: 'running' }));
  expect(jobs.map(({ id }) => id)).toContain(jobId);
}

test('a second admin is told of the first; when that command is killed, the next one goes back or on', async () => {
  const before = await taskPid();
  const job = (await machine.must(muster, 'submit', '--', 'true')).trim();
  await machine.must('touch', hangFile);
  await beginUpgrade(archives.sickAgent);
  // The store has the newer form by then.
  await waitFor('the new coordinator', async () => (await outputSoFar()).includes('restarting the agent'));
  const { pid } = JSON.parse(await machine.must('cat', '/run/muster-upgrade/upgrade.json')) as {
    pid: number;
  };
  const other = await machine.run(muster, 'upgrade', `/media/releases/${archives.sickAgent}`);
  expect(other.stderr).toContain(`root runs \`muster upgrade ${archives.sickAgent}\` since`);
  expect(other.stderr).toContain(`(process ${pid})`);
  await machine.must('kill', '-KILL', String(pid));

  const third = await machine.run(muster, 'upgrade', `/media/releases/${archives.sickCoordinator}`);
  expect(third.stderr).toContain('the upgrade of this machine from 0.2.0 to 0.3.0 was cut off');
  expect(third.stderr).toContain(`To go back: muster upgrade ${archives.next}`);
  // Nobody reads what it says: its ssh connection was lost.
  await machine.must('sh', '-c', `${muster} upgrade /media/releases/${archives.next} --wait 10m 2>&1 | true`);
  await isAsBefore(before, job);
});
