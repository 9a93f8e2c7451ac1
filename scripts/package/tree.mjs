// What a release holds, as a tree that runs wherever it is put: below /usr by the deb, in a folder of its own by the tarball.
//
//   bin/muster     a link to lib/muster/muster
//   lib/muster/    the launcher, Node, dist/ with the programs, koffi with its native library, the units of systemd, and
//                  SHA256SUMS of every other file of the tree, which `muster install` compares before it copies the tree
//   share/         manual pages, completions, documentation, licences, the bill of materials
import { chmod, copyFile, cp, lstat, lutimes, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { completionScripts } from '../../packages/cli/src/commands/completion.ts';
import { schemaVersion } from '../../packages/coordinator/src/store/schema.ts';
import { makeBundles } from '../bundle.mjs';
import { root } from '../setup.mjs';
import { manPages } from './manPages.mjs';
import { billOfMaterials, notices, partsOf } from './materials.mjs';
import { nativePackages } from './native.mjs';
import { filesBelow, sums } from './sums.mjs';

/**
 * @typedef {object} Release
 * @property {string} version as in package.json
 * @property {'x64' | 'arm64'} arch as Node names it
 * @property {string} commit of 40 hex digits
 * @property {number} epochS the time of the commit, in seconds since 1970: the time of everything in the release
 */

/** Where each shell looks, below `share/`. */
const completionPaths = {
  bash: 'bash-completion/completions/muster',
  zsh: 'zsh/vendor-completions/_muster',
  fish: 'fish/vendor_completions.d/muster.fish',
};

/** What koffi loads of itself on a system with glibc. */
const koffiFiles = [
  'package.json',
  'LICENSE.txt',
  'index.js',
  'src/koffi/index.js',
  'src/koffi/src/static.js',
];

/**
 * @param {string} target an empty folder
 * @param {Release} release
 * @param {string} packages the folder below which the npm packages of its native parts lie
 */
export async function makeTree(target, release, packages) {
  const lib = join(target, 'lib/muster');
  const { files, inputs } = await makeBundles({ for: 'release' });
  for (const { path, contents } of files) await write(join(lib, 'dist', path), contents);
  await copy(join(root, 'packages/cli/bin/muster'), join(lib, 'muster'));
  const native = nativePackages(release.arch);
  await copy(join(packages, native.node, 'bin/node'), join(lib, 'node'));
  const koffi = join(lib, 'node_modules/koffi');
  for (const path of koffiFiles) await copy(join(root, 'node_modules/koffi', path), join(koffi, path));
  for (const path of ['package.json', 'index.js', `linux_${release.arch}/koffi.node`])
    await copy(join(packages, native.koffi, path), join(lib, 'node_modules', native.koffi, path));
  await cp(join(root, 'deploy/systemd'), join(lib, 'systemd'), { recursive: true });
  await write(join(lib, 'release.json'), json({ ...release, storeSchema: schemaVersion }));
  await mkdir(join(target, 'bin'));
  await symlink('../lib/muster/muster', join(target, 'bin/muster'));

  const share = join(target, 'share');
  for (const { name, text } of await manPages(release))
    await write(join(share, 'man/man1', `${name}.gz`), gzipSync(text, { level: 9 }));
  for (const [shell, path] of Object.entries(completionPaths))
    await write(join(share, path), completionScripts[/** @type {keyof typeof completionPaths} */ (shell)]);
  const doc = join(share, 'doc/muster');
  for (const path of ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md', 'LICENSE'])
    await copy(join(root, path), join(doc, path));
  for (const path of ['docs', 'examples', 'proto', 'deploy/prometheus', 'deploy/grafana'])
    await cp(join(root, path), join(doc, path), { recursive: true });
  const parts = await partsOf(inputs, release, packages);
  await write(join(doc, 'sbom.cdx.json'), json(billOfMaterials(parts, release)));
  await write(join(doc, 'THIRD_PARTY_LICENSES'), notices(parts));
  const paths = (await filesBelow(target)).map((path) => relative(target, path)).sort();
  await write(join(lib, 'SHA256SUMS'), await sums('sha256', target, paths));
  await evenOut(target, release.epochS);
}

/** @param {unknown} value */
function json(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** @param {string} path @param {string | Uint8Array} contents */
async function write(path, contents) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, contents);
}

/** @param {string} from @param {string} to */
async function copy(from, to) {
  await mkdir(dirname(to), { recursive: true });
  await copyFile(from, to);
}

/**
 * Gives everything modes and times that depend on neither the umask nor the hour of the build.
 * @param {string} path
 * @param {number} epochS
 */
export async function evenOut(path, epochS) {
  const stats = await lstat(path);
  if (stats.isDirectory()) for (const name of await readdir(path)) await evenOut(join(path, name), epochS);
  const runs = stats.isDirectory() || (stats.mode & 0o100) !== 0;
  if (!stats.isSymbolicLink()) await chmod(path, runs ? 0o755 : 0o644);
  await lutimes(path, epochS, epochS);
}
