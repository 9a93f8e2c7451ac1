/** What a machine may answer to the scripts of `node add`; with real machines: test/e2e/nodeAdd.test.ts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { NodeView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { CliError } from '../errors.ts';
import { aNode } from '../testing/fakeCoordinator.ts';
import { type AddPlan, addHost } from './addHost.ts';
import type { RemoteShell } from './remoteShell.ts';

const facts = [
  'uid=0',
  'kernel=Linux',
  'machine=x86_64',
  'libc=glibc 2.36',
  'hostname=gpu-1',
  'systemd=yes',
].join('\n');

function aPlan(): AddPlan {
  const path = join(tempDir('archive').path, 'release.tar.gz');
  writeFileSync(path, 'an archive');
  const archive = { path, bytes: 10, sum: 'aa', release: 'bb', version: '0.1.0', arch: 'x64' };
  return {
    archive: { ...archive, close: () => {} },
    mode: 'system',
    coordinator: 'gpu-head:7070',
    tunnelPort: null,
    name: null,
    replace: false,
    allow: null,
    settings: [],
  };
}

/** @param failing what the first script that has this in it says before it fails */
async function failureWith(failing: readonly [script: string, stderr: string]): Promise<CliError> {
  const asked: string[] = [];
  const run: RemoteShell['run'] = async (script, call) => {
    asked.push(script);
    if (call?.input instanceof Readable) await call.input.toArray();
    const [part, stderr] = failing;
    if (script.includes(part)) return { exitCode: 2, stdout: '', stderr };
    return { exitCode: 0, stdout: facts, stderr: '' };
  };
  const shell: RemoteShell = { host: 'gpu-1', run, must: run, elevated: () => shell };
  const api = { listNodes: async () => [], createJoinToken: () => Promise.reject(new Error('not so far')) };
  const tools = {
    shell,
    api,
    show: () => {},
    onChosen: () => {},
    openTunnel: () => {},
    signal: new AbortController().signal,
  };
  const error: unknown = await addHost(aPlan(), tools).catch((thrown: unknown) => thrown);
  expect(asked.at(-1)).toContain(failing[0]);
  if (error instanceof CliError) return error;
  throw new Error(`expected a CliError, got ${String(error)}`);
}

test.each([
  ['exec cat >>', 'cat: write error: No space left on device\n'],
  [
    'tar -xzo',
    'tar: x: Wrote only 512 of 10240 bytes\ntar: x: Cannot write: No space left on device\ntar: Exiting with failure status\n',
  ],
])('a disk that is full while %s runs there is said, with the remedy', async (script, stderr) => {
  const { message, hints, code } = await failureWith([script, stderr]);
  expect(message).toBe('the disk of gpu-1 is full: the release does not fit into /var/cache');
  expect(code).toBe('resource_exhausted');
  expect(hints.join('\n')).toContain('the same command continues');
});

test('what else fails there is said in the words of the program', async () => {
  expect(
    (await failureWith(['exec cat >>', 'sh: 1: cannot create lock: Read-only file system\n'])).message,
  ).toBe('the release was not copied to gpu-1: sh: 1: cannot create lock: Read-only file system');
  expect(
    (await failureWith(['tar -xzo', 'gzip: stdin: invalid compressed data\ntar: Child died\n'])).message,
  ).toBe('the release was not unpacked on gpu-1: tar: Child died');
});

/**
 * `--replace` of a node that has joined.
 * @param fails whether a script fails there
 * @param state of the node from then on; unless it is online, the wait for it is interrupted
 */
async function replacing(fails: (script: string) => boolean, state: NodeView['state'] = 'online') {
  const asked: string[] = [];
  const joined = `${facts}\njoined=yes\nunpacked=yes\nnode=gpu-1\ncoordinator=gpu-head:7070\n`;
  const run: RemoteShell['run'] = async (script) => {
    const [step] = /^systemctl \w+|\binstall\b/.exec(script) ?? [];
    if (step !== undefined) asked.push(script.includes('--dry-run') ? 'check' : step);
    return { exitCode: fails(script) ? 2 : 0, stdout: joined, stderr: '' };
  };
  const must: RemoteShell['must'] = async (script, call) => {
    const outcome = await run(script, call);
    if (outcome.exitCode !== 0) throw new CliError('gpu-1: no space', { hints: ['Free some.'] });
    return outcome;
  };
  const shell: RemoteShell = { host: 'gpu-1', run, must, elevated: () => shell };
  const api = {
    listNodes: async () => [aNode({ name: 'gpu-1', state })],
    createJoinToken: async () => ({ token: 'a token' }) as never,
  };
  const stop = new AbortController();
  const show = (step: string) => {
    if (state !== 'online' && step === 'waiting for the node') setImmediate(() => stop.abort());
  };
  const tools = { shell, api, show, onChosen: () => {}, openTunnel: () => {}, signal: stop.signal };
  const ended = await addHost({ ...aPlan(), replace: true }, tools).catch((error: unknown) => error);
  return { asked, ended };
}

test('the agent of a healthy node is stopped once the install was checked, and started again when it fails', async () => {
  const done = await replacing(() => false);
  expect(done.asked).toEqual(['check', 'systemctl stop', 'install']);

  const invalid = await replacing((script) => script.includes('--dry-run'));
  expect(invalid.asked).toEqual(['check']);
  expect(invalid.ended).toMatchObject({ message: 'gpu-1: no space' });

  const full = await replacing((script) => script.includes('--join-token-file'));
  expect(full.asked).toEqual(['check', 'systemctl stop', 'install', 'systemctl start']);
  expect(full.ended).toMatchObject({
    message: 'gpu-1: no space',
    hints: ['Free some.', 'Its agent was started again.'],
  });

  const gone = await replacing((script) => /--join-token-file|systemctl start/.test(script));
  expect(gone.ended).toMatchObject({
    hints: ['Free some.', 'Its agent is stopped. On that machine: systemctl start muster-agent'],
  });
});

test('an interrupt ends the wait for the node', async () => {
  const { ended } = await replacing(() => false, 'silent');
  expect(ended).toMatchObject({ name: 'CliError', message: 'interrupted' });
});
