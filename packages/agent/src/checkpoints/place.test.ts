/** In a mount namespace like that of the agent's unit: what it may not write is read-only, what it may not see is empty. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir, waitFor } from '../../../../test/support/services.ts';
import { readMounts } from '../host/mounts.ts';
import { realPaths } from '../probes/realPaths.ts';
import { CheckpointRoots } from './directoryProblems.ts';
import { placeProblem, rootProblem } from './place.ts';

const mounts = () => readMounts();

/** `shared` and `home` on a node; the agent sees the one read-only, but for `shared/ours`, and nothing in the other. */
function aNode() {
  const root = tempDir('place').path;
  const [shared, home] = [join(root, 'shared'), join(root, 'home')];
  for (const path of ['shared/ours', 'shared/theirs', 'home/alice/ck', 'empty']) {
    mkdirSync(join(root, path), { recursive: true });
  }
  return { root, shared, home };
}

/** What the agent in its sandbox says; the guard outside of it sees all of the node. */
function inSandbox({ root, shared, home }: ReturnType<typeof aNode>, calls: readonly string[]): unknown[] {
  const onNode = [
    root,
    shared,
    join(shared, 'ours'),
    join(shared, 'theirs'),
    home,
    join(home, 'alice'),
    join(home, 'alice/ck'),
    '/tmp',
    '/',
  ];
  const program = `
    import { placeProblem, rootProblem } from ${JSON.stringify(join(import.meta.dirname, 'place.ts'))};
    import { readMounts } from ${JSON.stringify(join(import.meta.dirname, '../host/mounts.ts'))};
    const onNode = new Set(${JSON.stringify(onNode)});
    const fence = { realPaths: async (paths) => paths.map((path) => (onNode.has(path) ? path : null)) };
    const mounts = () => readMounts();
    const place = (path, changes) => placeProblem(path, changes, { fence, mounts });
    const trial = (path) => rootProblem(path, mounts);
    console.log(JSON.stringify(await Promise.all([${calls.join(', ')}])));
  `;
  const script = [
    'mount --bind "$1" "$1" && mount --bind "$1/ours" "$1/ours" && mount -o remount,bind,ro "$1"',
    'mount --bind "$2/../empty" "$2"',
    'exec "$3" --input-type=module --eval "$4"',
  ].join(' && ');
  const args = ['--mount', '--propagation', 'private', '--', 'sh', '-c', script, 'sh', shared, home];
  const output = execFileSync('unshare', [...args, process.execPath, program], { encoding: 'utf8' });
  return JSON.parse(output) as unknown[];
}

test('a sandbox is distinguished from a file system that is broken, and from a directory that is missing', () => {
  const node = aNode();
  const { shared, home } = node;
  const q = (path: string) => JSON.stringify(path);
  const sent = inSandbox(node, [
    `trial(${q(`${shared}/ours`)})`,
    `trial(${q(`${shared}/theirs`)})`,
    `trial(${q(`${home}/alice/ck`)})`,
    `place(${q(`${shared}/ours/new/one`)}, true)`,
    `place(${q(`${shared}/theirs`)}, false)`,
    `place(${q(`${shared}/theirs/new`)}, true)`,
    `place(${q(`${home}/alice/ck/new`)}, false)`,
  ]);
  const readOnly =
    "is read-only for the agent's service, and not on the node: name it as checkpoint_root in /etc/muster/agent.yaml, then `muster install agent`";
  expect(sent).toEqual([
    null,
    readOnly,
    "does not exist, or is hidden from the agent's service: name it as checkpoint_root in /etc/muster/agent.yaml, then `muster install agent`",
    null,
    // It is watched and resumed from; that its index cannot be written is a condition of the node.
    null,
    `the agent of this node cannot apply \`keep_last\`: ${shared}/theirs/new ${readOnly}`,
    `the agent of this node does not see ${home}/alice/ck, which its tasks see, so no checkpoint in ${home}/alice/ck/new ` +
      'would be used: name it as checkpoint_root in /etc/muster/agent.yaml, then `muster install agent`',
  ]);
});

test('an agent that sees what its tasks see has no problem', async () => {
  const { shared, home } = aNode();
  const fence = { realPaths };
  for (const path of [shared, join(shared, 'not/yet'), home]) {
    expect(await placeProblem(path, true, { fence, mounts })).toBeNull();
  }
  symlinkSync(shared, join(home, 'link'));
  expect(await rootProblem(join(home, 'link'), mounts)).toBeNull();
});

test('a root that cannot be written to is reported until it can; what a job has is reported first', async () => {
  const missing = join(aNode().shared, 'missing');
  const sent: (string | null)[] = [];
  const roots = new CheckpointRoots({
    roots: [missing],
    mounts,
    againMs: 20,
    log: silentLogger,
    onProblem: (problem) => sent.push(problem?.directory ?? null),
  });
  onTestFinished(() => roots.close());
  roots.start();
  await waitFor('it is missed', () => sent.at(-1) === missing);
  const task = { jobId: 'job_0123456789ab' as never, attempt: 1, nodeRank: 0 };
  roots.jobProblem({ task, directory: '/elsewhere', problem: 'is a symbolic link' });
  roots.jobProblem(null);
  expect(sent.filter((each, index) => each !== sent[index - 1])).toEqual([missing, '/elsewhere', missing]);
  mkdirSync(missing);
  await waitFor('it is there', () => sent.at(-1) === null);
});

test('a directory that another node makes in the meantime is hidden from nobody', async () => {
  const path = join(tempDir('place').path, 'checkpoints');
  const fence = {
    async realPaths(paths: readonly string[]) {
      // The agent may have looked by now.
      await setTimeout(50);
      mkdirSync(path);
      return realPaths(paths);
    },
  };
  expect(await placeProblem(path, true, { fence, mounts })).toBeNull();
});
