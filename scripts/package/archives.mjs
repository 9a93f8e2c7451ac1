// The tree of a release as files to hand out: the deb, the tarball and the npm package. The same tree gives the same bytes.
import { cp, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { root } from '../setup.mjs';
import { run } from './run.mjs';
import { filesBelow, sums } from './sums.mjs';
import { evenOut } from './tree.mjs';

/** @typedef {import('./tree.mjs').Release} Release */

/**
 * @typedef {object} Making how archives are made
 * @property {number} gzip 1 to 9
 * @property {number} xz 0 to 9
 * @property {AbortSignal} interrupted
 */

/** Debian's names of the machines. */
const debArchitectures = { x64: 'amd64', arm64: 'arm64' };

/** Scripts of the package that dpkg calls, in packaging/deb/. */
const maintainerScripts = ['preinst', 'postinst', 'prerm', 'postrm'];

/** All but bin/, which holds a link: npm drops links and makes its own. */
const npmContents = ['lib', 'share'];

/** @param {Release} release */
export function tarballName({ version, arch }) {
  return `muster-${version}-linux-${arch}.tar.gz`;
}

/** @param {Release} release */
export function npmPackageName({ version, arch }) {
  return `muster-npm-${version}-linux-${arch}.tgz`;
}

/** @param {Release} release */
export function debName({ version, arch }) {
  return `muster_${version}_${debArchitectures[arch]}.deb`;
}

/**
 * With one folder at its top, so that it can be unpacked anywhere.
 * @param {string} tree
 * @param {string} target
 * @param {Release} release
 * @param {Making} making
 */
export async function makeTarball(tree, target, release, making) {
  const folder = tarballName(release).replace(/\.tar\.gz$/, '');
  await tar(target, release, making, ['-C', tree, `--transform=s,^[.],${folder},rSH`, '.']);
}

/**
 * Installs without the registry: it depends on no other package, and its Node is inside. npm links `muster` to the launcher.
 * @param {string} tree
 * @param {string} target
 * @param {string} work an empty folder
 * @param {Release} release
 * @param {Making} making
 */
export async function makeNpmPackage(tree, target, work, release, making) {
  const { description, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const pages = await readdir(join(tree, 'share/man/man1'));
  const manifest = {
    name: '@muster/muster',
    version: release.version,
    description,
    license,
    os: ['linux'],
    cpu: [release.arch],
    libc: ['glibc'],
    bin: { muster: 'lib/muster/muster' },
    man: pages.sort().map((page) => `share/man/man1/${page}`),
  };
  await writeFile(join(work, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const name of ['README.md', 'LICENSE']) await cp(join(root, name), join(work, name));
  await evenOut(work, release.epochS);
  const own = ['-C', work, 'package.json', 'README.md', 'LICENSE'];
  await tar(target, release, making, ['--transform=s,^,package/,', ...own, '-C', tree, ...npmContents]);
}

/**
 * @param {string} tree moves into `work`
 * @param {string} target
 * @param {string} work an empty folder on the same file system
 * @param {Release} release
 * @param {Making} making
 */
export async function makeDeb(tree, target, work, release, making) {
  await rename(tree, join(work, 'usr'));
  // Where Debian looks for the licence and the changes of a package, and for reasons why lintian should be silent.
  const doc = join(work, 'usr/share/doc/muster');
  await cp(join(root, 'packaging/deb/copyright'), join(doc, 'copyright'));
  await writeFile(join(doc, 'changelog.gz'), gzipSync(changelog(release), { level: 9 }));
  await mkdir(join(work, 'usr/share/lintian/overrides'), { recursive: true });
  await cp(join(root, 'packaging/deb/lintian-overrides'), join(work, 'usr/share/lintian/overrides/muster'));
  const paths = (await filesBelow(join(work, 'usr'))).map((path) => relative(work, path)).sort();
  const control = join(work, 'DEBIAN');
  await mkdir(control);
  const scripts = await readdir(join(root, 'packaging/deb'));
  for (const name of scripts.filter((each) => maintainerScripts.includes(each)))
    await cp(join(root, 'packaging/deb', name), join(control, name));
  await writeFile(join(control, 'control'), await controlFile(work, paths, release));
  await writeFile(join(control, 'md5sums'), await sums('md5', work, paths));
  await evenOut(work, release.epochS);
  await run(
    'dpkg-deb',
    ['--root-owner-group', '-Zxz', `-z${making.xz}`, '--threads-max=1', '--build', work, target],
    { env: { SOURCE_DATE_EPOCH: String(release.epochS) } },
    making.interrupted,
  );
}

/** One entry in Debian's form; what has changed stands in CHANGELOG.md. @param {Release} release */
function changelog({ version, epochS }) {
  const date = new Date(epochS * 1000).toUTCString().replace('GMT', '+0000');
  return [
    `muster (${version}) stable; urgency=medium\n`,
    `  * Release ${version}. Changes: /usr/share/doc/muster/CHANGELOG.md\n`,
    ` -- Muster maintainers <maintainers@users.noreply.example>  ${date}\n`,
  ].join('\n');
}

/** @param {string} work @param {readonly string[]} paths @param {Release} release */
async function controlFile(work, paths, { version, arch }) {
  const template = await readFile(join(root, 'packaging/deb/control'), 'utf8');
  const sizes = await Promise.all(paths.map(async (path) => (await stat(join(work, path))).size));
  const sizeKib = Math.ceil(sizes.reduce((sum, size) => sum + size, 0) / 1024);
  return template
    .replace('@VERSION@', version)
    .replace('@ARCHITECTURE@', debArchitectures[arch])
    .replace('@SIZE_KIB@', String(sizeKib));
}

/** @param {string} target @param {Release} release @param {Making} making @param {readonly string[]} args */
function tar(target, { epochS }, { gzip, interrupted }, args) {
  const form = [
    '--sort=name',
    '--format=gnu',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    `--mtime=@${epochS}`,
  ];
  return run(
    'tar',
    [...form, `--use-compress-program=gzip -n -${gzip}`, '-cf', target, ...args],
    {},
    interrupted,
  );
}
