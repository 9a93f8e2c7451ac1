/** What is refused before a machine is touched; the rest is test/e2e/nodeAdd.test.ts. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aNode, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';
import { openHostLines } from './hostLines.ts';
import { hostsOf, noteHost } from './hostsFile.ts';
import { parseTarget } from './sshTarget.ts';
import { tunnelUnit } from './tunnel.ts';

test.each([
  [['gpu-1'], 'serves this machine only', '--tunnel'],
  [['gpu-1', 'gpu-2', '--name', 'a'], '--name is the name of one node', 'by itself'],
  [['root@-oProxyCommand=x'], '"root@-oProxyCommand=x" is not a host', ''],
  [['a b'], '"a b" is not a host', '~/.ssh/config'],
  [['gpu-1', '--tunnel', '--coordinator', 'h:1'], '--coordinator and --tunnel exclude each other', ''],
  [['gpu-1', '--coordinator', 'h'], '--coordinator takes HOST:PORT', ''],
  [['gpu-1', '--coordinator', 'h:7070', '--release', 'none.tar.gz'], 'none.tar.gz: it does not exist', ''],
  [['gpu-1', '--coordinator', 'h:7070'], 'does not run from the archive of a release', 'npm run package'],
])('node add %j is refused', async (words, sentence, hint) => {
  const { stderr, exitCode, requests } = await run(['node', 'add', ...words]);
  expect(stderr).toContain(sentence);
  expect(stderr).toContain(hint);
  expect(exitCode).not.toBe(exitCodes.ok);
  expect(requests).toEqual([]);
});

const task = {
  task: { jobId: 'job_aaaaaaaaaaaa' as const, attempt: 1, nodeRank: 0 },
  name: 'llama',
  gpus: 1,
  cpus: 1,
  stopAtMs: null,
  stopping: true,
};
const busy = aNode({ tasks: [task] } as never);

test('node remove drains first, waits until the tasks have ended, and leaves a drained node alone that falls silent', async () => {
  let asked = 0;
  const done = await run(['node', 'remove', 'node-1', '--deadline', '2m', '-o', 'json'], {
    ListNodes: () => ({ nodes: [wire.node((asked += 1) < 3 ? busy : aNode())] }),
    DrainNode: () => wire.node(busy),
    RemoveNode: () => ({}),
  });
  expect(done.exitCode, done.stderr).toBe(exitCodes.ok);
  expect(done.requests.map(({ method }) => method)).toEqual([
    'ListNodes',
    'DrainNode',
    'ListNodes',
    'ListNodes',
    'RemoveNode',
  ]);
  expect(done.requests[1]).toMatchObject({ request: { deadlineMs: 120_000 } });
  expect(JSON.parse(done.stdout)).toEqual({ node: 'node-1', uninstalled: false });

  let again = 0;
  const silent = await run(['node', 'remove', 'node-1'], {
    ListNodes: () => ({ nodes: [wire.node((again += 1) < 2 ? busy : { ...busy, state: 'silent' })] }),
    DrainNode: () => wire.node(busy),
  });
  expect(silent.stderr).toContain('node-1 no longer responds, and 1 task ran there');
  expect(silent.stderr).toContain('muster node remove node-1 --force');

  const dead = await run(['node', 'remove', 'node-1', '--force'], {
    ListNodes: () => ({ nodes: [wire.node({ ...busy, state: 'silent' })] }),
    ConfirmDead: () => wire.node(busy),
    RemoveNode: () => ({}),
  });
  expect(dead.requests.map(({ method }) => method)).toEqual(['ListNodes', 'ConfirmDead', 'RemoveNode']);
});

/** `node remove` of a node that `node add` has recorded; the node is as the coordinator shows it, the last one from then on. */
async function removeRecorded(shown: readonly NodeView[], ...flags: readonly string[]) {
  let asked = 0;
  const coordinator = await fakeCoordinator({
    ListNodes: () => ({ nodes: [wire.node(shown[Math.min((asked += 1), shown.length) - 1] ?? aNode())] }),
    ConfirmDead: () => wire.node(busy),
    RemoveNode: () => ({}),
  });
  const { path } = tempDir('ssh');
  const ran = join(path, 'ran');
  writeFileSync(join(path, 'ssh'), `#!/bin/sh\necho "$*" >>${ran}\necho installed=x; echo uid=0\n`, {
    mode: 0o755,
  });
  const { context, stderr } = newCall(coordinator.address);
  const { environment } = context;
  const variables = { ...environment.variables, PATH: `${path}:${process.env['PATH']}` };
  noteHost(coordinator.address, 'node-1', { ssh: 'root@gpu-1', tunnel: false }, environment);
  const exitCode = await runCli(['node', 'remove', 'node-1', ...flags], {
    ...context,
    environment: { ...environment, variables },
  });
  return {
    exitCode,
    problem: stderr(),
    asked: coordinator.requests.map(({ method }) => method),
    ranThere: existsSync(ran) ? readFileSync(ran, 'utf8') : '',
    isRecorded: Object.hasOwn(hostsOf(coordinator.address, environment), 'node-1'),
  };
}

test.each([
  ['--no-drain', 'it has 1 task that has not ended', busy, ['--no-drain']],
  ['a silent node', 'it is silent, and 1 task may run there', { ...busy, state: 'silent' as const }, []],
])('node remove uninstalls nothing while tasks run there: %s', async (_what, sentence, node, flags) => {
  const refused = await removeRecorded([node], ...flags);
  expect(refused.problem).toContain(`node-1 was not removed: ${sentence}`);
  expect(refused.problem).toContain('muster node remove node-1');
  expect(refused.exitCode).toBe(exitCodes.refused);
  expect(refused.asked).not.toContain('RemoveNode');
  expect(refused.ranThere).toBe('');
  expect(refused.isRecorded).toBe(true);
});

test('node remove --no-drain uninstalls a node without tasks', async () => {
  const done = await removeRecorded([aNode()], '--no-drain');
  expect(done.exitCode, done.problem).toBe(exitCodes.ok);
  expect(done.ranThere).toContain('uninstall agent --force');
  expect(done.isRecorded).toBe(false);
});

test('node remove --force of a busy node counts its tasks as ended once the node is silent', async () => {
  const done = await removeRecorded([busy, busy, { ...busy, state: 'silent' }], '--force');
  expect(done.exitCode, done.problem).toBe(exitCodes.ok);
  expect(done.ranThere).toContain('uninstall agent --force');
  expect(done.asked).toEqual(['ListNodes', 'ListNodes', 'ListNodes', 'ConfirmDead', 'RemoveNode']);
});

test('the unit of a tunnel ends on loopback, is never given up, and names no secret', () => {
  const target = parseTarget('root@gpu-3');
  const text = tunnelUnit(
    'gpu-3',
    { target, port: 17_070, coordinator: '10.0.0.1:7070' },
    '/usr/bin/ssh',
    false,
  );
  expect(text).toContain(' -R 127.0.0.1:17070:10.0.0.1:7070 -- root@gpu-3\n');
  expect(text).toContain('-o BatchMode=yes');
  expect(text).toContain('-o ExitOnForwardFailure=yes');
  expect(text).toContain('StartLimitIntervalSec=0\n');
  expect(text).toContain('WantedBy=multi-user.target\n');
});

test('a terminal shows a line for each host that is worked on, and keeps one for each that has ended', async () => {
  const written: string[] = [];
  const output = (isTerminal: boolean) => ({
    isTerminal,
    columns: () => 40,
    rows: () => 10,
    onResize: () => () => {},
    write: async (data: string | Uint8Array) => void written.push(String(data)),
  });
  const lines = openHostLines(output(true), output(true));
  lines.show('a', 'connecting');
  lines.show('b', 'copying 5 %');
  lines.show('b', 'copying 5 %');
  await lines.end('a', 'a: added\n');
  expect(written).toEqual([
    'a: connecting\n',
    '\x1b[1A\r\x1b[Ja: connecting\nb: copying 5 %\n',
    '\x1b[2A\r\x1b[J',
    'a: added\n',
    'b: copying 5 %\n',
  ]);
  written.length = 0;
  const plain = openHostLines(output(false), output(false));
  plain.show('a', 'connecting');
  await plain.end('a', 'a: added\n');
  expect(written).toEqual(['a: added\n']);
});
