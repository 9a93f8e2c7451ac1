/** A machine that systemd runs, with Debian's package of an earlier commit, over which that of this checkout is installed. */
import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { makePackages } from '../../../scripts/package.mjs';
import { earlierDeb, noEarlierCommit } from '../../support/earlierBuild.ts';
import { bootMachine } from '../../support/hosts/bootedMachine.ts';
import { tempDir, waitFor } from '../../support/services.ts';

const release = {
  version: '0.1.0',
  arch: process.arch as 'x64' | 'arm64',
  commit: '0123456789abcdef0123456789abcdef01234567',
  epochS: 1_700_000_000,
};
const quickly = { gzip: 1, xz: 0, interrupted: new AbortController().signal };

interface Answer {
  readonly nodes: readonly { readonly state: string; readonly agentVersion: string }[];
  readonly jobs: readonly { readonly id: string; readonly name: string; readonly state: string }[];
}

test('the package of this checkout is installed over an older one, and its task and store stay', async ({
  skip,
}) => {
  const older = (await earlierDeb()) ?? skip(noEarlierCommit);
  const { path } = tempDir('release');
  const [newer = ''] = await makePackages(path, release, quickly, ['deb']);
  copyFileSync(older, join(path, basename(older)));
  const machine = await bootMachine('gpu-1', { '/srv/release': path });
  const dpkg = async (name: string) => {
    const variables = ['DEBIAN_FRONTEND=noninteractive', 'MUSTER_INSTALL=coordinator agent'];
    await machine.must('env', ...variables, 'dpkg', '--install', join('/srv/release', name));
  };
  const muster = (...argv: readonly string[]) => machine.must('muster', ...argv);
  const ask = async (...argv: readonly string[]) => JSON.parse(await muster(...argv, '-o', 'json')) as Answer;
  try {
    await dpkg(basename(older));
    expect(await machine.must('dpkg-query', '--show', '--showformat=${Version}', 'muster')).toBe('0.0.9');
    const ended = (await muster('submit', '--', 'true')).trim();
    await muster('submit', '--name', 'long', '--', 'sleep', '100000');
    const task = () => machine.must('pgrep', '-fx', 'sleep 100000');
    const before = await waitFor('the task', task);
    await waitFor('the end of the first job', async () =>
      (await ask('jobs', '--all')).jobs.some(({ id, state }) => id === ended && state === 'succeeded'),
    );
    const programs = () =>
      machine.must(
        'systemctl',
        'show',
        '--property=MainPID',
        '--value',
        'muster-coordinator',
        'muster-agent',
      );
    const daemons = await programs();

    await dpkg(newer);
    await waitFor('the newer daemons', async () => {
      const now = await programs();
      return now !== daemons && (await ask('nodes')).nodes.every(({ state }) => state === 'online');
    });
    expect(await machine.must('dpkg-query', '--show', '--showformat=${Version}', 'muster')).toBe('0.1.0');
    expect(await task()).toBe(before);
    const { jobs } = await ask('jobs', '--all');
    expect(jobs).toContainEqual(expect.objectContaining({ name: 'long', state: 'running' }));
    expect(jobs).toContainEqual(expect.objectContaining({ id: ended, state: 'succeeded' }));
    expect(await muster('submit', '--follow', '--', 'echo', 'after it')).toContain('after it\n');
    await muster('stop', 'long');
    await waitFor(
      'the end of the task',
      async () => (await machine.run('pgrep', '-fx', 'sleep 100000')).stdout === '',
    );
  } finally {
    await machine.remove();
  }
});
