// `npm run package`: makes a release of this commit: a deb, a tarball, an npm package and their checksums, in dist/packages/ or the
// folder after `--out`. `--arch arm64` makes it for another kind of machine. The same commit gives the same bytes.
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { capture, interruption } from './processes.mjs';
import { prepare, root } from './setup.mjs';
import { exitWith, Stop, step } from './terminal.mjs';

/** @typedef {import('./package/tree.mjs').Release} Release */

const fullCompression = { gzip: 9, xz: 6 };

/** What a slow line can still load in a minute or two. */
const sizeMaxBytes = 60_000_000;

/** @typedef {'tarball' | 'npm' | 'deb'} Kind */

/**
 * @param {string} outDir gets the files; made where it is missing
 * @param {Release} release
 * @param {import('./package/archives.mjs').Making} making
 * @param {readonly Kind[]} kinds
 * @returns {Promise<string[]>} the names of the files
 * @throws {Stop}
 */
export async function makePackages(outDir, release, making, kinds = ['tarball', 'npm', 'deb']) {
  const { nativeParts } = await import('./package/native.mjs');
  const { makeTree } = await import('./package/tree.mjs');
  const { requireMachine } = await import('./package/machines.mjs');
  const archives = await import('./package/archives.mjs');
  const { sums } = await import('./package/sums.mjs');
  await mkdir(outDir, { recursive: true });
  // Beside the results: they are moved to their place only when all of them are complete.
  const work = await mkdtemp(join(outDir, '.work-'));
  try {
    const folders = ['native', 'tree', 'npm', 'deb', 'done'].map((name) => join(work, name));
    const [native = '', tree = '', npm = '', deb = '', done = ''] = folders;
    for (const folder of folders) await mkdir(folder);
    await makeTree(tree, release, await nativeParts(release, native, making.interrupted));
    await requireMachine(tree, release.arch);
    const { tarballName, npmPackageName, debName } = archives;
    const nameOf = { tarball: tarballName, npm: npmPackageName, deb: debName };
    const target = (/** @type {Kind} */ kind) => join(done, nameOf[kind](release));
    await Promise.all([
      kinds.includes('tarball') && archives.makeTarball(tree, target('tarball'), release, making),
      kinds.includes('npm') && archives.makeNpmPackage(tree, target('npm'), npm, release, making),
    ]);
    if (kinds.includes('deb')) await archives.makeDeb(tree, target('deb'), deb, release, making);
    const names = kinds.map((kind) => nameOf[kind](release));
    await writeFile(join(done, 'SHA256SUMS'), await sums('sha256', done, names.toSorted()));
    for (const name of [...names, 'SHA256SUMS']) await rename(join(done, name), join(outDir, name));
    return [...names, 'SHA256SUMS'];
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * The commit that is checked out.
 * @param {string} arch
 * @returns {Promise<Release>}
 * @throws {Stop} when it is not known what the release would be made from
 */
async function currentRelease(arch) {
  const { default: manifest } = await import('../package.json', { with: { type: 'json' } });
  const changed = await git(['status', '--porcelain']);
  if (changed !== '')
    throw new Stop(
      `A release is made from a commit, and these files are in none:\n${changed}\nCommit or remove them.`,
    );
  const [commit = '', time = ''] = (await git(['log', '-1', '--format=%H %ct'])).split(' ');
  if (arch !== 'x64' && arch !== 'arm64')
    throw new Stop(`There is no release for machines of the kind ${arch}, only for x64 and arm64.`, 2);
  return { version: manifest.version, arch, commit, epochS: Number(time) };
}

/** @param {string[]} args */
async function git(args) {
  const { code, output } = await capture('git', args, { cwd: root });
  if (code !== 0)
    throw new Stop(`A release is made from a git checkout, but git failed in ${root}:\n${output.trimEnd()}`);
  return output.trim();
}

/** @throws {Stop} at a flag that does not exist */
function flags() {
  try {
    return parseArgs({ options: { out: { type: 'string' }, arch: { type: 'string' } } }).values;
  } catch (error) {
    throw new Stop(
      `${/** @type {Error} */ (error).message}\nUsage: npm run package -- [--out FOLDER] [--arch x64|arm64]`,
      2,
    );
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void exitWith(async () => {
    const { NODE_EXTRA_CA_CERTS: certificates } = process.env;
    await prepare(import.meta.url);
    // The registry is asked for the native parts of another kind of machine.
    if (certificates !== undefined) process.env.NODE_EXTRA_CA_CERTS = certificates;
    const values = flags();
    const outDir = resolve(values.out ?? join(root, 'dist/packages'));
    const release = await currentRelease(values.arch ?? process.arch);
    const making = { ...fullCompression, interrupted: interruption() };
    const title = `Packing Muster ${release.version} for ${release.arch} (${release.commit.slice(0, 8)})`;
    const names = await step(title, () => makePackages(outDir, release, making));
    for (const name of names) {
      const { size } = await stat(join(outDir, name));
      if (size > sizeMaxBytes)
        throw new Stop(`${name} has ${size} bytes; a release may have ${sizeMaxBytes}.`);
      process.stdout.write(`${relative(process.cwd(), join(outDir, name))}  ${(size / 1e6).toFixed(1)} MB\n`);
    }
    return 0;
  });
}
