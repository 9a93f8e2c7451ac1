/** A cluster of machines that boot, upgraded in waves through ssh: a machine that is away, and one whose new agent does not start. */
import { beforeAll, expect, test } from 'vitest';
import {
  archivesDir,
  type BootedCluster,
  bootCluster,
  installedMuster,
} from '../../support/hosts/bootedCluster.ts';
import { startSshdOn, stopSshdOn } from '../../support/hosts/machineNetwork.ts';
import { Releases } from '../../support/releases.ts';
import { waitFor } from '../../support/services.ts';

const nodeCount = 4;
/** On the machine that has it the new agent ends at once. */
const sickFile = '/etc/sick';

let cluster: BootedCluster;
let archives: Readonly<Record<'next' | 'afterNext', string>>;

beforeAll(async () => {
  const releases = await Releases.make();
  const first = await releases.archive({ version: '0.1.0' });
  archives = {
    next: await releases.archive({ version: '0.2.0' }),
    afterNext: await releases.archive({
      version: '0.3.0',
      hasNewSchema: true,
      prelude:
        `if (process.argv[2] === 'agent' && process.getBuiltinModule('node:fs').existsSync('${sickFile}')) ` +
        `{ console.error('no such luck'); process.exit(1); }\n`,
    }),
  };
  cluster = await bootCluster(releases, first, nodeCount);
  for (let job = 0; job < nodeCount; job += 1)
    await cluster.muster('submit', '--name', 'long', '--gpus', '1', '--', 'sleep', '100000');
  await waitFor('the tasks', taskPids);
  return () => cluster.remove();
});

/** A task on each node. */
function taskPids(): Promise<readonly string[]> {
  return Promise.all(cluster.nodes.map((node) => node.must('pgrep', '-fx', 'sleep 100000')));
}

async function upgrade(archive: string) {
  const flags = ['--nodes', 'all', '--wave', '2', '--wait', '10m'];
  const { exitCode, stdout, stderr } = await cluster.head.run(
    installedMuster,
    'upgrade',
    `${archivesDir}/${archive}`,
    ...flags,
  );
  // The coordinator's own line has no node.
  const lines = stdout.split('\n').filter((line) => line.startsWith('gpu-'));
  return { exitCode, stderr, lines: lines.toSorted() };
}

async function versions(): Promise<readonly string[]> {
  const { nodes } = JSON.parse(await cluster.muster('nodes', '-o', 'json')) as {
    nodes: readonly { readonly name: string; readonly agentVersion: string }[];
  };
  return nodes.map(({ name, agentVersion }) => `${name} ${agentVersion}`).toSorted();
}

test('a machine that is away ends the waves, and the same command continues when it is back', async () => {
  const before = await taskPids();
  const [, , third] = cluster.nodes;
  if (third === undefined) throw new Error('no third node');
  await stopSshdOn(third);
  const cut = await upgrade(archives.next);
  expect(cut.lines, cut.stderr).toEqual([
    'gpu-1: upgraded from 0.1.0 to 0.2.0',
    'gpu-2: upgraded from 0.1.0 to 0.2.0',
    expect.stringMatching(/^gpu-3: not upgraded: gpu-3 accepts no ssh connections/),
    'gpu-4: upgraded from 0.1.0 to 0.2.0',
  ]);
  expect(cut.stderr).toContain('gpu-3 was not upgraded to 0.2.0');
  expect(cut.exitCode).not.toBe(0);
  await startSshdOn(third, cluster.publicKey);
  const rest = await upgrade(archives.next);
  expect(rest.lines, rest.stderr).toEqual([
    'gpu-1: has 0.2.0 already',
    'gpu-2: has 0.2.0 already',
    'gpu-3: upgraded from 0.1.0 to 0.2.0',
    'gpu-4: has 0.2.0 already',
  ]);
  expect(rest.exitCode).toBe(0);
  expect(await taskPids()).toEqual(before);
});

test('a machine whose new agent does not start goes back by itself, and those after it are not touched', async () => {
  const before = await taskPids();
  const second = cluster.nodes[1];
  if (second === undefined) throw new Error('no second node');
  await second.must('touch', sickFile);
  const cut = await upgrade(archives.afterNext);
  expect(cut.lines, cut.stderr).toEqual([
    'gpu-1: upgraded from 0.2.0 to 0.3.0',
    expect.stringMatching(/^gpu-2: not upgraded: .*the agent is not healthy.*the old release runs again/),
  ]);
  expect(cut.stderr).toContain('gpu-2 was not upgraded to 0.3.0; gpu-3, gpu-4 were not touched');
  expect(cut.exitCode).not.toBe(0);
  await waitFor('gpu-2 with its old agent', async () => (await versions()).includes('gpu-2 0.2.0'));
  await second.must('rm', sickFile);
  const rest = await upgrade(archives.afterNext);
  expect([rest.exitCode, rest.lines[0]], rest.stderr).toEqual([0, 'gpu-1: has 0.3.0 already']);
  expect(await versions()).toEqual([1, 2, 3, 4].map((number) => `gpu-${number} 0.3.0`));
  expect(await taskPids()).toEqual(before);
});
