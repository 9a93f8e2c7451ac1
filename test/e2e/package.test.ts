/** A release, unpacked where there is no checkout, no npm and no network. */
import { execFile } from 'node:child_process';
import { copyFile, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { commandTable } from '../../packages/cli/src/commandTable.ts';
import { makePackages } from '../../scripts/package.mjs';
import { staticBusybox, tempDir } from '../support/services.ts';

const run = promisify(execFile);
const release = {
  version: '0.1.0',
  arch: process.arch as 'x64' | 'arm64',
  commit: '0123456789abcdef0123456789abcdef01234567',
  epochS: 1_700_000_000,
};
const tarball = `muster-0.1.0-linux-${release.arch}`;
/** What is tested does not depend on the compression, and the best takes a minute. */
const quickly = { gzip: 1, xz: 0, interrupted: new AbortController().signal };

let home: string;
let packages: string;
/** A root with the deb unpacked in it. */
let installed: string;

beforeAll(async () => {
  home = tempDir('package').path;
  packages = join(home, 'packages');
  await makePackages(packages, release, quickly);
  installed = join(home, 'root');
  await emptyRoot(installed);
  const deb = `muster_0.1.0_${release.arch === 'x64' ? 'amd64' : release.arch}.deb`;
  await run('dpkg-deb', ['--extract', join(packages, deb), installed]);
});

test('the same commit gives the same bytes, whatever the umask and the hour', async () => {
  const again = join(home, 'again');
  const umask = process.umask(0o077);
  await makePackages(again, release, quickly).finally(() => process.umask(umask));
  const sums = await readFile(join(packages, 'SHA256SUMS'), 'utf8');
  expect(await readFile(join(again, 'SHA256SUMS'), 'utf8')).toBe(sums);
  expect(sums.match(/\.(?:deb|tar\.gz|tgz)$/gm)).toHaveLength(3);
  await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: packages });
  for (const name of await readdir(packages))
    expect((await stat(join(packages, name))).size, name).toBeLessThan(60_000_000);
});

/** A root with busybox, the libraries that the deb depends on, and nothing else. */
async function emptyRoot(root: string): Promise<void> {
  for (const folder of ['bin', 'etc', 'opt', 'proc', 'dev', 'root', 'tmp'])
    await mkdir(join(root, folder), { recursive: true });
  await copyFile(staticBusybox(), join(root, 'bin/busybox'));
  const commands = await run(staticBusybox(), ['--list']);
  for (const command of commands.stdout.split('\n').filter((name) => name !== '' && name !== 'busybox'))
    await symlink('busybox', join(root, 'bin', command));
  const { stdout } = await run('ldd', [process.execPath]);
  for (const [, library = ''] of stdout.matchAll(/(\/\S+)/g)) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(library, join(root, library));
  }
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
}

/** Runs a script with the root for its whole file system, in a network of its own that leads nowhere. */
async function runIn(root: string, script: string): Promise<string> {
  const enter = `ip link set lo up && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
    exec chroot "$0" /bin/env -i HOME=/root PATH=/usr/bin:/bin /bin/sh -ec "$1"`;
  const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  const namespaces = [...asRoot, '--mount', '--net', '--pid', '--fork', '--kill-child'];
  const { stdout } = await run('unshare', [...namespaces, 'sh', '-ec', enter, root, script]);
  return stdout;
}

test('the deb runs jobs on a machine with nothing else on it, and writes nothing beside itself', async () => {
  const output = await runIn(
    installed,
    `muster --version
     muster up --detach --nodes 1 --gpus 2 >&2
     muster submit --follow --gpus 2 -- sh -c 'echo saw $CUDA_VISIBLE_DEVICES'
     muster down >&2
     find /usr/lib/muster -newer /etc/passwd
     ls ~/.cache/muster/compiled`,
  );
  expect(output.split('\n')).toEqual([
    'muster 0.1.0',
    'saw GPU-SIMULATED-node-1-0,GPU-SIMULATED-node-1-1',
    expect.stringMatching(/^part-short-\w+\.js\.submit$/),
    expect.stringMatching(/^v24\./),
    '',
  ]);
});

test('the tarball runs wherever it is unpacked', async () => {
  await run('tar', ['-xzf', join(packages, `${tarball}.tar.gz`), '-C', join(installed, 'opt')]);
  const program = `/opt/${tarball}/bin/muster`;
  await run('sha256sum', ['--check', '--quiet', 'lib/muster/SHA256SUMS'], {
    cwd: join(installed, `opt/${tarball}`),
  });
  expect(await runIn(installed, `${program} --version; ${program} nvlm 2>&1 || true`)).toBe(
    `muster 0.1.0\nmuster: unknown command 'nvlm'\nSee: ${program} --help\n`,
  );
});

test('the npm package installs from its tarball alone', async () => {
  const prefix = join(home, 'npm');
  const file = join(packages, `muster-npm-0.1.0-linux-${release.arch}.tgz`);
  const env = { HOME: prefix, PATH: process.env['PATH'], npm_config_cache: join(prefix, 'cache') };
  await run('npm', ['install', '--global', '--offline', '--prefix', prefix, file], { env });
  const { stdout } = await run(join(prefix, 'bin/muster'), ['--version'], { env: { PATH: '/usr/bin:/bin' } });
  expect(stdout).toBe('muster 0.1.0\n');
  expect((await lstat(join(prefix, 'share/man/man1/muster.1.gz'))).isSymbolicLink()).toBe(true);
});

test('every command has a manual page with the flags of its help', async () => {
  const pages = join(installed, 'usr/share/man/man1');
  const names = commandTable.map(({ name }) => `muster-${name}.1.gz`);
  expect((await readdir(pages)).sort()).toEqual(['muster.1.gz', ...names].sort());
  const submit = gunzipSync(await readFile(join(pages, 'muster-submit.1.gz'))).toString();
  expect(submit).toContain('.B \\-\\-gpus <');
  const node = gunzipSync(await readFile(join(pages, 'muster-node.1.gz'))).toString();
  expect(node).toContain('.SH MUSTER NODE DRAIN\n');
});

test('the bill of materials names what is inside, and nothing that only builds or tests it', async () => {
  const doc = join(installed, 'usr/share/doc/muster');
  const bill = JSON.parse(await readFile(join(doc, 'sbom.cdx.json'), 'utf8')) as Bill;
  const names = bill.components.map(({ name }) => name);
  const native = `@koromix/koffi-linux-${release.arch}`;
  const node = `node-linux-${release.arch}`;
  expect(names).toEqual(expect.arrayContaining(['koffi', native, node, 'zod', '@grpc/grpc-js', 'commander']));
  expect(names.filter((name) => ['vitest', 'esbuild', 'typescript', 'knip'].includes(name))).toEqual([]);
  expect(bill.components.filter(({ hashes }) => hashes?.[0]?.content.length !== 128)).toEqual([]);
  const insideNode = bill.components.find(({ name }) => name === node)?.components ?? [];
  expect(insideNode.map(({ name }) => name)).toEqual(expect.arrayContaining(['openssl', 'sqlite', 'v8']));
  const licences = await readFile(join(doc, 'THIRD_PARTY_LICENSES'), 'utf8');
  for (const { name, version } of bill.components) expect(licences).toContain(`\n${name} ${version} (`);
});

interface Bill {
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly hashes?: readonly { readonly content: string }[];
    readonly components?: readonly { readonly name: string }[];
  }[];
}
