/**
 * From a bare machine with the package at hand to its first job: `dpkg --install` with the roles, then `muster submit --follow`, on a
 * machine that systemd runs and that has nothing of Muster. Floor of the same run: the bare unpacking of the package.
 *
 *     node bench/firstJob.ts [rounds]        as root, on Linux with systemd and dpkg
 *
 * Prints JSON. The package is compressed as a release is.
 */
import { join } from 'node:path';
import { makePackages } from '../scripts/package.mjs';
import { bootMachine } from '../test/support/hosts/bootedMachine.ts';
import { releaseAll, tempDir } from '../test/support/services.ts';
import { quietMachine, report, reportMachine, rounded, summary } from './support.ts';

const rounds = Number(process.argv[2] ?? 5);
const release = {
  version: '0.1.0',
  arch: process.arch as 'x64' | 'arm64',
  commit: '0123456789abcdef0123456789abcdef01234567',
  epochS: 1_700_000_000,
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return rounded(performance.now() - startedMs);
}

async function round(folder: string, name: string) {
  const machine = await bootMachine('gpu-1', { '/srv/release': folder });
  const deb = join('/srv/release', name);
  try {
    const unpackMs = await timed(() => machine.must('dpkg-deb', '--extract', deb, '/var/unpacked'));
    await machine.must('rm', '-r', '/var/unpacked');
    const installMs = await timed(() =>
      machine.must(
        'env',
        'MUSTER_INSTALL=coordinator agent',
        'DEBIAN_FRONTEND=noninteractive',
        'dpkg',
        '--install',
        deb,
      ),
    );
    const jobMs = await timed(() => machine.must('muster', 'submit', '--follow', '--', 'true'));
    return { unpackMs, installMs, jobMs };
  } finally {
    await machine.remove();
  }
}

reportMachine();
const { path } = tempDir('release');
const making = { gzip: 9, xz: 6, interrupted: new AbortController().signal };
try {
  const [name = ''] = await makePackages(path, release, making, ['deb']);
  report('busy', { percent: await quietMachine(20) });
  const times = [];
  for (let each = 0; each < rounds; each += 1) times.push(await round(path, name));
  report('floor: dpkg-deb --extract', summary(times.map(({ unpackMs }) => unpackMs)));
  report('dpkg --install with both roles', summary(times.map(({ installMs }) => installMs)));
  report('the first job, submit to its end', summary(times.map(({ jobMs }) => jobMs)));
  report('both', summary(times.map(({ installMs, jobMs }) => installMs + jobMs)));
} finally {
  await releaseAll();
}
