/** Which machines are upgraded, in which order, and where it ends; the machines are shells that copy, and only note what else they are told. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { CliError } from '../errors.ts';
import type { RemoteShell } from '../remote/remoteShell.ts';
import { nodeHosts, upgradeInWaves } from './upgradeNodes.ts';

const known = {
  'gpu-1': { ssh: 'root@a', tunnel: false },
  'gpu-2': { ssh: 'b', tunnel: true },
  mine: { ssh: 'me@c', tunnel: false, user: true },
};

test('nodes are named with or without their hosts', () => {
  const { mine: _mine, ...services } = known;
  const names = (typed: string) =>
    nodeHosts(typed, services).map(({ node, target }) => `${node} ${target.text}`);
  expect(names('all')).toEqual(['gpu-1 root@a', 'gpu-2 b']);
  const unordered = { 'gpu-10': known['gpu-1'], 'gpu-2': known['gpu-1'], 'gpu-1': known['gpu-1'] };
  expect(nodeHosts('all', unordered).map(({ node }) => node)).toEqual(['gpu-1', 'gpu-2', 'gpu-10']);
  expect(names('gpu-2,gpu-7=root@x,gpu-2')).toEqual(['gpu-2 b', 'gpu-7 root@x']);
  expect(() => nodeHosts('gpu-9', known)).toThrow('no host is known for node gpu-9');
  expect(() => nodeHosts('constructor', known)).toThrow('no host is known for node constructor');
  expect(() => nodeHosts('all', {})).toThrow('no host was recorded');
  expect(() => nodeHosts('gpu-1=-oProxyCommand=x', known)).toThrow('is not a host');
  expect(() => nodeHosts('mine', known)).toThrow('the agent of mine runs without root');
});

/** Nodes a to e at 0.1.0, of which those that are named stay there. */
function aCluster(
  stuck: readonly string[] = [],
  refused: readonly string[] = [],
  stop = new AbortController(),
  onUpgrade: (host: string) => void = () => {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'muster-waves-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'release.tar.gz');
  writeFileSync(path, 'the release');
  const incoming = join(folder, 'muster-upgrade');
  const sh = (script: string, input = Buffer.alloc(0)) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script.replaceAll('/var/cache', folder)], {
      input,
    });
    return { exitCode: status ?? 1, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  const versions = new Map(['a', 'b', 'c', 'd', 'e'].map((name) => [name, '0.1.0']));
  const printed: string[] = [];
  const ran: string[] = [];
  const shellOf = (host: string, isRoot: boolean): RemoteShell => ({
    host,
    async run(script, call) {
      if (call?.input instanceof Readable) return sh(script, await buffer(call.input));
      if (script === 'id -u') return { exitCode: 0, stdout: '1000\n', stderr: '' };
      if (!isRoot) throw new Error('not as root');
      if (script.startsWith('rm ')) return sh(script);
      if (script.includes(' upgrade ')) {
        const [file = ''] = /\S+\.tar\.gz/.exec(script) ?? [];
        expect(readFileSync(file, 'utf8')).toBe('the release');
        if (refused.includes(host)) throw new CliError(`${host}: no space`, { hints: ['Free some.'] });
        ran.push(host);
        onUpgrade(host);
        if (stop.signal.aborted) throw new CliError('interrupted');
        if (!stuck.includes(host)) versions.set(host, '0.2.0');
      }
      return { exitCode: 0, stdout: '', stderr: '' };
    },
    must: (script) => shellOf(host, isRoot).run(script),
    elevated: (sudo) => shellOf(host, sudo),
  });
  const upgrade = (wave: number) =>
    upgradeInWaves(
      {
        hosts: nodeHosts('a=a,b=b,c=c,d=d,e=e', {}),
        archive: {
          path,
          bytes: 11,
          sum: createHash('sha256').update('the release').digest('hex'),
          version: '0.2.0',
        },
        wave,
        waitMs: 1_000,
      },
      {
        openShell: ({ text }) => shellOf(text, false),
        listNodes: async () =>
          Array.from(versions, ([name, agentVersion]) => ({ name, state: 'online', agentVersion }) as const),
        print: async (line) => void printed.push(line),
        signal: stop.signal,
      },
    );
  return { upgrade, printed, ran, versions, path, incoming };
}

test('every machine gets the release, and one that has it is left alone', async () => {
  const { upgrade, printed, ran, versions } = aCluster();
  versions.set('c', '0.2.0');
  await upgrade(2);
  expect(ran.toSorted()).toEqual(['a', 'b', 'd', 'e']);
  expect(printed.toSorted()).toEqual([
    'a: upgraded from 0.1.0 to 0.2.0\n',
    'b: upgraded from 0.1.0 to 0.2.0\n',
    'c: has 0.2.0 already\n',
    'd: upgraded from 0.1.0 to 0.2.0\n',
    'e: upgraded from 0.1.0 to 0.2.0\n',
  ]);
});

test('the wave with a machine that fails or does not come back is the last one', async () => {
  const full = aCluster([], ['b']);
  await expect(full.upgrade(2)).rejects.toThrow('b was not upgraded to 0.2.0; c, d, e were not touched');
  expect(full.printed).toContain('b: not upgraded: b: no space\n  Free some.\n');
  expect(full.ran).toEqual(['a']);

  const silent = aCluster(['d']);
  await expect(silent.upgrade(1)).rejects.toThrow('d was not upgraded to 0.2.0; e was not touched');
  expect(silent.ran).toEqual(['a', 'b', 'c', 'd']);
  expect(silent.printed.at(-1)).toContain('the coordinator sees it online with version 0.1.0');
});

test('an interrupt ends the call, not the upgrades that have begun', async () => {
  const stop = new AbortController();
  const { upgrade, printed, ran } = aCluster([], [], stop, (host) => {
    if (host === 'b') stop.abort();
  });
  expect(await upgrade(1)).toBe(false);
  expect(ran).toEqual(['a', 'b']);
  expect(printed.slice(1)).toEqual([
    'b: interrupted; the upgrade there continues\n',
    'c, d, e were not touched\n',
  ]);

  const early = new AbortController();
  const none = aCluster([], [], early);
  early.abort();
  expect(await none.upgrade(2)).toBe(false);
  expect([none.ran, none.printed]).toEqual([[], ['a, b, c, d, e were not touched\n']]);

  const late = new AbortController();
  const waiting = aCluster(['a'], [], late, () => setImmediate(() => late.abort()));
  late.signal.addEventListener('abort', () => waiting.printed.push('pressed'));
  expect(await waiting.upgrade(1)).toBe(false);
  expect(waiting.printed.slice(0, 2)).toEqual(['pressed', 'a: interrupted; the upgrade there continues\n']);
});

test('two admins at once do not disturb the copy of each other, and nothing of either is left', async () => {
  const { upgrade, printed, incoming } = aCluster();
  mkdirSync(join(incoming, 'old'), { recursive: true });
  utimesSync(join(incoming, 'old'), 0, 0);
  await Promise.all([upgrade(5), upgrade(5)]);
  expect(printed).toHaveLength(10);
  expect(printed.filter((line) => line.includes('not upgraded'))).toEqual([]);
  expect(readdirSync(incoming)).toEqual([]);
});

test('an archive that arrives as something else is not used, and not kept', async () => {
  const { upgrade, printed, ran, path, incoming } = aCluster();
  writeFileSync(path, 'half of it');
  await expect(upgrade(1)).rejects.toThrow('b, c, d, e were not touched');
  expect(printed).toEqual(['a: not upgraded: a: what arrived differs from what was sent\n']);
  expect(ran).toEqual([]);
  expect(existsSync(incoming) && readdirSync(incoming)).toEqual([]);
});

test('a machine whose disk has no room for the archive is named with what it takes, and nothing stays there', async () => {
  const { upgrade, printed, ran, path, incoming } = aCluster();
  writeFileSync(path, Buffer.alloc(16 * 1024));
  mkdirSync(incoming);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'tmpfs', incoming]);
  try {
    await expect(upgrade(1)).rejects.toThrow('a was not upgraded to 0.2.0; b, c, d, e were not touched');
    expect(printed.join('')).toContain(
      'the disk of a is full: the archive (11 B) does not fit into /var/cache',
    );
    expect(ran).toEqual([]);
    expect(readdirSync(incoming)).toEqual([]);
  } finally {
    execFileSync('umount', [incoming]);
  }
});
