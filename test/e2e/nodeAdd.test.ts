/** Machines that become nodes through ssh, from the machine of the admin, and what can go wrong with them meanwhile. */
import { beforeAll, expect, test } from 'vitest';
import type { BootedMachine } from '../support/hosts/bootedMachine.ts';
import { type HostsToAdd, hostsToAdd, installedMuster } from '../support/hosts/hostsToAdd.ts';
import { runAtSwitch, startSshdOn, stopSshdOn } from '../support/hosts/machineNetwork.ts';
import { waitFor } from '../support/services.ts';

const muster = installedMuster;
const hostNames = ['gpu-1', 'gpu-2', 'gpu-3'] as const;
type HostName = (typeof hostNames)[number];

let machines: HostsToAdd<HostName>;
let head: BootedMachine;
const at = (name: HostName) => machines.at(name);
const know = (wrong?: HostName) => machines.know(wrong);
const add = (...words: readonly string[]) => machines.add(...words);
const nodes = () => machines.nodes();

beforeAll(async () => {
  // The third cannot reach the coordinator.
  const closed = 'iptables -A INPUT -s 10.77.0.4 -p tcp --dport 7070 -j DROP';
  machines = await hostsToAdd(hostNames, [closed]);
  head = machines.head;
  return () => machines.remove();
});

const savedHosts = async () =>
  JSON.parse(await head.must('sh', '-c', 'cat ~/.config/muster/hosts.json')) as Record<string, unknown>;

/** Bytes of the archive that have arrived. */
async function arrivedAt(name: HostName): Promise<number> {
  const { stdout } = await at(name).run('sh', '-c', 'stat -c %s /var/cache/muster-node-add/*.part');
  return Number(stdout);
}

test('of three hosts at once one vanishes during the copy and one has a wrong key; the third is a node', async () => {
  await know('gpu-3');
  await runAtSwitch(
    head,
    'tc',
    'qdisc',
    'add',
    'dev',
    'port3',
    'root',
    'tbf',
    'rate',
    '8mbit',
    'burst',
    '64kb',
    'latency',
    '1s',
  );
  const adding = add('root@gpu-1', 'root@gpu-2', 'root@gpu-3');
  await waitFor('a part of the release on gpu-2', async () => (await arrivedAt('gpu-2')) > 1_000_000);
  await stopSshdOn(at('gpu-2'));
  const { of, exitCode, stderr } = await adding;
  expect(of('root@gpu-1'), stderr).toMatchObject({ node: 'gpu-1', error: null });
  expect(of('root@gpu-2')).toMatchObject({ error: expect.stringContaining('the connection to gpu-2 broke') });
  expect(of('root@gpu-3')).toMatchObject({
    error: 'gpu-3 shows another host key than the one that is known for it here',
    hint: expect.stringContaining('ssh-keygen -R gpu-3'),
  });
  expect(exitCode).not.toBe(0);
  expect(await nodes()).toEqual(new Map([['gpu-1', 'online']]));
  // A part of a release is not one.
  expect((await at('gpu-2').run('ls', '/opt/muster/current')).exitCode).not.toBe(0);
});

test('the same command continues where it ended, and jobs run on each node', async () => {
  const arrived = await arrivedAt('gpu-2');
  expect(arrived).toBeGreaterThan(1_000_000);
  await runAtSwitch(head, 'tc', 'qdisc', 'del', 'dev', 'port3', 'root');
  await startSshdOn(at('gpu-2'), machines.publicKey);
  const { of, stderr } = await add('root@gpu-1', 'root@gpu-2');
  expect([of('root@gpu-1')?.error, of('root@gpu-2')?.error], stderr).toEqual([null, null]);
  const output = await head.must(muster, 'submit', '--follow', '--nodes', '2', '--', 'hostname');
  expect(output).toContain('gpu-1');
  expect(output).toContain('gpu-2');
  expect(await savedHosts()).toEqual({
    local: {
      'gpu-1': { ssh: 'root@gpu-1', tunnel: false },
      'gpu-2': { ssh: 'root@gpu-2', tunnel: false },
    },
  });
  // Neither the token nor what was copied is left.
  for (const path of ['/etc/muster/join-token', '/var/cache/muster-node-add'])
    expect((await at('gpu-2').run('ls', path)).exitCode, path).not.toBe(0);
});

test('a host that cannot reach the coordinator is led to it by a tunnel, which comes back', async () => {
  await know();
  const { of, stderr } = await add('root@gpu-3', '--tunnel', '--set', 'gpus=1');
  expect(of('root@gpu-3')?.error, stderr).toBe(null);
  await head.must('systemctl', 'kill', '--signal=KILL', 'muster-tunnel-gpu-3');
  await waitFor('the node without its tunnel, and with it again', async () => {
    const restarts = await head.must(
      'systemctl',
      'show',
      '-p',
      'NRestarts',
      '--value',
      'muster-tunnel-gpu-3',
    );
    return Number(restarts) > 0 && (await nodes()).get('gpu-3') === 'online';
  });
  const output = await head.must(muster, 'submit', '--follow', '--gpus', '1', '--', 'hostname');
  expect(output).toContain('gpu-3');
});

test('remove drains, uninstalls and revokes; a dead machine is removed by force', async () => {
  await head.must(muster, 'submit', '--gpus', '1', '--name', 'long', '--', 'sleep', '100000');
  await waitFor('the task', () => at('gpu-3').must('pgrep', '-fx', 'sleep 100000'));
  await head.must(muster, 'node', 'remove', 'gpu-3', '--deadline', '0');
  expect([...(await nodes()).keys()]).toEqual(['gpu-1', 'gpu-2']);
  expect((await at('gpu-3').run('pgrep', '-fx', 'sleep 100000')).stdout).toBe('');
  // Saved and rescheduled: it waits for another GPU.
  await head.must(muster, 'stop', 'long');
  expect(await at('gpu-3').must('systemctl', 'list-units', '--plain', '--no-legend', 'muster*')).toBe('');
  expect((await at('gpu-3').run('ls', '/opt/muster')).exitCode).not.toBe(0);
  expect(
    await head.must('systemctl', 'list-units', '--all', '--plain', '--no-legend', 'muster-tunnel*'),
  ).toBe('');
  const { credentials } = JSON.parse(await head.must(muster, 'token', 'list', '-o', 'json')) as {
    credentials: readonly { readonly node: string | null }[];
  };
  expect(credentials.some(({ node }) => node === 'gpu-3')).toBe(false);

  await stopSshdOn(at('gpu-2'));
  const refused = await head.run(muster, 'node', 'remove', 'gpu-2');
  expect(refused.stderr).toContain('gpu-2 accepts no ssh connections');
  expect(refused.stderr).toContain('muster node remove gpu-2 --force');
  expect((await nodes()).has('gpu-2')).toBe(true);
  await head.must(muster, 'node', 'remove', 'gpu-2', '--force');
  expect(await savedHosts()).toEqual({ local: { 'gpu-1': { ssh: 'root@gpu-1', tunnel: false } } });
});

test('without root the agent runs as the user, outlives the ssh connection and its own end, and is removed', async () => {
  await at('gpu-3').must('useradd', '--create-home', '--password', '*', 'ada');
  const { of, stderr } = await add('ada@gpu-3', '--user', '--tunnel', '--name', 'ada-1', '--set', 'gpus=1');
  expect(of('ada@gpu-3')?.error, stderr).toBe(null);
  const job = ['submit', '--follow', '--gpus', '1', '--', 'id', '-un'] as const;
  expect(await head.must(muster, ...job)).toContain('ada\n');
  const agentPid = async () => (await at('gpu-3').must('pgrep', '-u', 'ada', '-f', 'agent --config')).trim();
  const before = await agentPid();
  await at('gpu-3').must('kill', '-KILL', before);
  await waitFor('another agent', async () => (await agentPid()) !== before);
  expect(await head.must(muster, ...job)).toContain('ada\n');
  await head.must(muster, 'node', 'remove', 'ada-1', '--purge');
  expect((await nodes()).has('ada-1')).toBe(false);
  const left = () => at('gpu-3').run('pgrep', '-u', 'ada', '-a');
  await waitFor('nothing of the agent', left, { until: ({ stdout }) => stdout === '' });
  expect((await at('gpu-3').run('sh', '-c', 'ls -A ~ada/.local/share/muster')).stdout).toBe('');
});

test('behind a jump host, the unit of a lingering user runs the agent, and a task outlives its end', async () => {
  const there = at('gpu-3');
  await there.must('useradd', '--create-home', '--password', '*', 'bea');
  await there.must('loginctl', 'enable-linger', 'bea');
  await there.must('iptables', '-A', 'INPUT', '-s', '10.77.0.1', '-p', 'tcp', '--dport', '22', '-j', 'DROP');
  const sshConfig = 'Host via\nHostName 10.77.0.4\nHostKeyAlias gpu-3\nProxyJump root@gpu-1\n';
  await head.must('sh', '-c', 'printf %s "$1" > ~/.ssh/config', 'sh', sshConfig);
  const { of, stderr } = await add('bea@via', '--user', '--tunnel', '--name', 'bea-1', '--set', 'gpus=1');
  expect(of('bea@via')?.error, stderr).toBe(null);
  const mainPid = async () => {
    const show = 'XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user show -p MainPID --value muster-agent';
    return (await there.must('su', 'bea', '-c', show)).trim();
  };
  const before = await mainPid();
  expect(Number(before)).toBeGreaterThan(0);
  await head.must(muster, 'submit', '--gpus', '1', '--name', 'long', '--', 'sleep', '100000');
  const task = await waitFor('the task', () => there.must('pgrep', '-u', 'bea', '-fx', 'sleep 100000'));
  await there.must('kill', '-KILL', before);
  await waitFor('another agent', mainPid, { until: (pid) => pid !== before && Number(pid) > 0 });
  await waitFor('its node', nodes, { until: (all) => all.get('bea-1') === 'online' });
  expect(await there.must('pgrep', '-u', 'bea', '-fx', 'sleep 100000')).toBe(task);
  await head.must(muster, 'stop', 'long');
  await head.must(muster, 'node', 'remove', 'bea-1', '--purge');
  const left = () => there.run('pgrep', '-u', 'bea', '-f', 'muster');
  await waitFor('nothing of the agent', left, { until: ({ stdout }) => stdout === '' });
});
