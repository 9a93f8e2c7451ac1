// Builds the bundles (bundle.mjs) into dist/, which `./muster` runs. `--force` builds even when nothing has changed.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isPart, makeBundles } from './bundle.mjs';
import { root } from './setup.mjs';
import { exitWith, secondsSince } from './terminal.mjs';

const outDir = join(root, 'dist');

/** A part that is no longer wanted may still be loaded by a command that has just started; after this, none will. */
const stalePartAgeMs = 10 * 60_000;

/**
 * @param {{ force?: boolean }} [options]
 * @returns {Promise<boolean>} false: everything was current, nothing was done
 */
export async function build(options = {}) {
  const startedAtMs = Date.now();
  if (!options.force && (await isCurrent())) return false;
  const { files, inputs } = await makeBundles({ for: 'checkout' });
  for (const { path, contents } of files) await replaceFile(join(outDir, path), contents);
  await rm(join(outDir, '.compile-cache'), { recursive: true, force: true });
  await removeStaleParts(new Set(files.map((file) => file.path)));
  await writeStamp(inputs, startedAtMs);
  return true;
}

/** @param {string} path @param {string | Uint8Array} contents */
async function replaceFile(path, contents) {
  // Named after this process: two builds at once must not write into each other's half-finished file.
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, contents);
  await rename(temporary, path);
}

/** @param {Set<string>} wanted */
async function removeStaleParts(wanted) {
  const unwanted = (await readdir(outDir)).filter((name) => isPart(name) && !wanted.has(name));
  for (const name of unwanted) {
    const { mtimeMs } = await stat(join(outDir, name));
    if (Date.now() - mtimeMs > stalePartAgeMs) await rm(join(outDir, name), { force: true });
  }
}

// What a build depends on: every file that went into the last one, what says how packages resolve, and this script.
const stampPath = join(outDir, '.inputs.json');
const resolution = [
  'package-lock.json',
  'scripts/build.mjs',
  'scripts/bundle.mjs',
  'scripts/preparedMessages.mjs',
  ...[
    'common',
    'checkpoints',
    'diagnosis',
    'experiments',
    'pipelines',
    'advice',
    'coordinator',
    'agent',
    'cli',
  ].map((name) => `packages/${name}/package.json`),
];

async function isCurrent() {
  const text = await readFile(stampPath, 'utf8').catch(() => null);
  if (text === null) return false;
  /** @type {{ inputs: string[], state: string }} */
  const stamp = JSON.parse(text);
  return stamp.state === (await stateOf(stamp.inputs)).state;
}

/**
 * @param {string[]} bundled paths relative to the root, as esbuild names them
 * @param {number} startedAtMs a file saved after this may have been bundled as it was before
 */
async function writeStamp(bundled, startedAtMs) {
  // Files below node_modules change only together with the lock file.
  const own = bundled.filter((path) => !path.includes('node_modules/'));
  const inputs = [...new Set([...own, ...resolution])].sort();
  const { state, newestMs } = await stateOf(inputs);
  if (newestMs >= startedAtMs) await rm(stampPath, { force: true });
  else await replaceFile(stampPath, JSON.stringify({ inputs, state }));
}

/** @param {string[]} inputs */
async function stateOf(inputs) {
  const hash = createHash('sha256');
  const states = await Promise.all(inputs.map((path) => stat(join(root, path)).catch(() => null)));
  for (const [index, state] of states.entries()) {
    hash.update(`${inputs[index]} ${state?.mtimeMs} ${state?.size}\n`);
  }
  return { state: hash.digest('hex'), newestMs: Math.max(...states.map((state) => state?.mtimeMs ?? 0)) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void exitWith(async () => {
    const startedAtMs = performance.now();
    const built = await build({ force: process.argv.includes('--force') });
    process.stderr.write(built ? `Built dist/ in ${secondsSince(startedAtMs)}.\n` : 'dist/ is current.\n');
    return 0;
  });
}
