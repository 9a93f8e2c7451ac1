// `npm run package`: makes a release of this commit for this kind of machine: a deb, a tarball, an npm package and their checksums,
// in dist/packages/ or the folder after `--out`. The same commit gives the same bytes.
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { capture } from './processes.mjs';
import { prepare, root } from './setup.mjs';
import { exitWith, Stop, step } from './terminal.mjs';

/** @typedef {import('./package/tree.mjs').Release} Release */

const fullCompression = { gzip: 9, xz: 6 };

/** What a slow line can still load in a minute or two. */
const sizeMaxBytes = 60_000_000;

/**
 * @param {string} outDir gets the files; made where it is missing
 * @param {Release} release
 * @param {import('./package/archives.mjs').Compression} [compression]
 * @returns {Promise<string[]>} the names of the files
 * @throws {Stop}
 */
export async function makePackages(outDir, release, compression = fullCompression) {
  const { makeTree } = await import('./package/tree.mjs');
  const archives = await import('./package/archives.mjs');
  await mkdir(outDir, { recursive: true });
  // Beside the results, which are moved there only when all of them are whole.
  const work = await mkdtemp(join(outDir, '.work-'));
  try {
    const folders = ['tree', 'npm', 'deb', 'done'].map((name) => join(work, name));
    const [tree = '', npm = '', deb = '', done = ''] = folders;
    for (const folder of folders) await mkdir(folder);
    await makeTree(tree, release);
    const { tarballName, npmPackageName, debName } = archives;
    const names = [tarballName(release), npmPackageName(release), debName(release)];
    const [tarball = '', npmPackage = '', debian = ''] = names.map((name) => join(done, name));
    await Promise.all([
      archives.makeTarball(tree, tarball, release, compression),
      archives.makeNpmPackage(tree, npmPackage, npm, release, compression),
    ]);
    await archives.makeDeb(tree, debian, deb, release, compression);
    await writeFile(join(done, 'SHA256SUMS'), await archives.sums('sha256', done, names.toSorted()));
    for (const name of [...names, 'SHA256SUMS']) await rename(join(done, name), join(outDir, name));
    return [...names, 'SHA256SUMS'];
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * The commit that is checked out.
 * @returns {Promise<Release>}
 * @throws {Stop} when it is not known what the release would be made from
 */
async function currentRelease() {
  const { default: manifest } = await import('../package.json', { with: { type: 'json' } });
  const changed = await git(['status', '--porcelain']);
  if (changed !== '')
    throw new Stop(
      `A release is made from a commit, and these files are in none:\n${changed}\nCommit or remove them.`,
    );
  const [commit = '', time = ''] = (await git(['log', '-1', '--format=%H %ct'])).split(' ');
  const { arch } = process;
  if (arch !== 'x64' && arch !== 'arm64')
    throw new Stop(`Muster has no release for machines of the kind ${arch}.`);
  return { version: manifest.version, arch, commit, epochS: Number(time) };
}

/** @param {string[]} args */
async function git(args) {
  const { code, output } = await capture('git', args, { cwd: root });
  if (code !== 0)
    throw new Stop(`A release is made from a git checkout, but git failed in ${root}:\n${output.trimEnd()}`);
  return output.trim();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void exitWith(async () => {
    await prepare(import.meta.url);
    const { values } = parseArgs({ options: { out: { type: 'string' } } });
    const outDir = resolve(values.out ?? join(root, 'dist/packages'));
    const release = await currentRelease();
    const names = await step(`Packing Muster ${release.version} (${release.commit.slice(0, 8)})`, () =>
      makePackages(outDir, release),
    );
    for (const name of names) {
      const { size } = await stat(join(outDir, name));
      if (size > sizeMaxBytes)
        throw new Stop(`${name} has ${size} bytes; a release may have ${sizeMaxBytes}.`);
      process.stdout.write(`${relative(process.cwd(), join(outDir, name))}  ${(size / 1e6).toFixed(1)} MB\n`);
    }
    return 0;
  });
}
