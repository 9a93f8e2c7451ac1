/** One machine becomes a node through ssh, runs a job and is a machine again. What can go wrong meanwhile: `nodeAdd.test.ts`. */
import { beforeAll, expect, test } from 'vitest';
import { type HostsToAdd, hostsToAdd, installedMuster } from '../support/hosts/hostsToAdd.ts';
import { waitFor } from '../support/services.ts';

let machines: HostsToAdd<'gpu-1'>;

beforeAll(async () => {
  machines = await hostsToAdd(['gpu-1']);
  return () => machines.remove();
});

test('a host whose key is unknown is not added; with its key it gets the release and is a node until it is removed', async () => {
  const { head, at } = machines;
  const refused = await machines.add('root@gpu-1');
  expect(refused.of('root@gpu-1')?.error).toContain('host key');
  expect(refused.exitCode).not.toBe(0);

  await machines.know();
  const { of, stderr } = await machines.add('root@gpu-1', '--set', 'gpus=1');
  expect(of('root@gpu-1'), stderr).toMatchObject({ node: 'gpu-1', error: null });
  expect(await machines.nodes()).toEqual(new Map([['gpu-1', 'online']]));
  const job = ['submit', '--follow', '--gpus', '1', '--', 'sh', '-c', 'hostname; id -un'];
  expect(await head.must(installedMuster, ...job)).toContain('gpu-1\nmuster-tasks\n');
  for (const path of ['/etc/muster/join-token', '/var/cache/muster-node-add'])
    expect((await at('gpu-1').run('ls', path)).exitCode, path).not.toBe(0);

  // As after weeks without a connection: it gets another certificate, and its task runs on.
  await head.must(installedMuster, 'submit', '--gpus', '1', '--name', 'long', '--', 'sleep', '100000');
  const task = () => at('gpu-1').must('pgrep', '-fx', 'sleep 100000');
  const before = await waitFor('the task', task);
  const certificate = () => at('gpu-1').must('sha256sum', '/var/lib/muster-agent/credential');
  const earlier = await certificate();
  const again = await machines.add('root@gpu-1', '--replace');
  expect(again.of('root@gpu-1'), again.stderr).toMatchObject({ node: 'gpu-1', error: null });
  expect(await certificate()).not.toBe(earlier);
  expect(await task()).toBe(before);
  await head.must(installedMuster, 'stop', 'long');

  await head.must(installedMuster, 'node', 'remove', 'gpu-1', '--deadline', '0');
  expect(await machines.nodes()).toEqual(new Map());
  expect(await at('gpu-1').must('systemctl', 'list-units', '--plain', '--no-legend', 'muster*')).toBe('');
  expect((await at('gpu-1').run('ls', '/opt/muster')).exitCode).not.toBe(0);
});
