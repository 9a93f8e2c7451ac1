/**
 * The first file of the built `muster`, `dist/muster.mjs`. It finds the code of the command and what V8 compiled of it earlier.
 *
 * Short commands are one script. Its compiled code is kept here instead of by Node, one file for each command, because Node keeps
 * only the functions that are compiled when a module is loaded: to compile those that a submit calls was a quarter of its time. A
 * script that has run contains them.
 */
import * as fs from 'node:fs';
import { createRequire, enableCompileCache } from 'node:module';
import { Script } from 'node:vm';

/** What scripts/bundle.mjs puts in these places. */
declare const __SHORT_COMMANDS__: readonly string[];
/** The file of all short commands, beside this one; its name contains a hash of its content. */
declare const __SHORT_FILE__: string;
/** The module of all other commands, beside this file. */
declare const __MAIN_FILE__: string;
declare const __IS_RELEASE__: boolean;

const cacheDir = cacheDirectory();
if (cacheDir !== null) enableCompileCache(cacheDir);
const command = process.argv[2];
if (command !== undefined && __SHORT_COMMANDS__.includes(command)) runShort(command);
else await import(__MAIN_FILE__);

/**
 * In a checkout the cache lies beside the bundles, because in the shared temporary folder another user could plant code in it.
 * Installed, the bundles belong to root, so it lies where systemd or the XDG rules put the caches of a user. It is used only where
 * that folder belongs to the caller: under `sudo -E` the home is that of another user, who could plant code in it.
 */
function cacheDirectory(): string | null {
  if (!__IS_RELEASE__) return `${import.meta.dirname}/.compile-cache`;
  const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
  const [base, below] = CACHE_DIRECTORY
    ? [CACHE_DIRECTORY, '']
    : XDG_CACHE_HOME
      ? [XDG_CACHE_HOME, '/muster']
      : [HOME, '/.cache/muster'];
  if (base?.startsWith('/') !== true) return null;
  const owner = fs.statSync(base, { throwIfNoEntry: false })?.uid;
  return owner === process.getuid?.() ? `${base}${below}/compiled` : null;
}

function runShort(name: string): void {
  const filename = `${import.meta.dirname}/${__SHORT_FILE__}`;
  const cacheFile = `${__SHORT_FILE__}.${name}`;
  const cachedData = cacheDir === null ? undefined : readIfThere(`${cacheDir}/${cacheFile}`);
  // The bundler writes ASCII.
  const script = new Script(fs.readFileSync(filename, 'latin1'), {
    filename,
    cachedData,
  });
  if (cacheDir !== null && (cachedData === undefined || script.cachedDataRejected === true))
    process.once('exit', () => keepCompiled(script, cacheDir, cacheFile));
  const requireModule = (id: string): unknown => process.getBuiltinModule(id) ?? createRequire(filename)(id);
  const run = script.runInThisContext() as (...given: unknown[]) => void;
  run(requireModule, import.meta.dirname, filename);
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return fs.readFileSync(path);
  } catch {
    return undefined;
  }
}

/** Commands work without a cache, on a full disk for example, so nothing is reported. */
function keepCompiled(script: Script, dir: string, file: string): void {
  const temporary = `${dir}/${file}.${process.pid}`;
  try {
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    // V8 does not look whether compiled code is damaged, so a file gets its name only when all of it is on the disk.
    fs.writeFileSync(temporary, script.createCachedData(), { mode: 0o600, flush: true });
    fs.renameSync(temporary, `${dir}/${file}`);
    for (const other of fs.readdirSync(dir)) if (isOfOtherVersion(other)) fs.rmSync(`${dir}/${other}`);
  } catch {
    if (fs.existsSync(temporary)) fs.rmSync(temporary);
  }
}

function isOfOtherVersion(file: string): boolean {
  return file.startsWith('part-short-') && !file.startsWith(__SHORT_FILE__);
}
