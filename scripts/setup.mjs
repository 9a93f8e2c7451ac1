// Makes a checkout ready to run: installed packages, Node 24, a current build. `npm run demo` and `npm test` begin here,
// so this file runs on the Node that the machine happens to have (20 or newer) and imports nothing that is not built in.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { captureGroup, disposableInterruption, exitCode } from './processes.mjs';
import { exitWith, Stop, step, tail } from './terminal.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));

const nodeMajorMin = 24;
const binaries = join(root, 'node_modules/.bin');

/**
 * Installs what the lock file says, unless it is there already, and continues under Node 24: on an older Node the
 * calling script is started again under the Node that npm has just installed, and this process ends with its exit code.
 * @param {string} scriptUrl the caller's `import.meta.url`
 */
export async function prepare(scriptUrl) {
  if (!isInstalled()) await install();
  if (Number.parseInt(process.versions.node, 10) < nodeMajorMin) {
    process.exit(await runUnderNode24(fileURLToPath(scriptUrl)));
  }
  process.env.PATH = `${binaries}${delimiter}${process.env.PATH ?? ''}`;
  // Every Node that starts would read the whole certificate file first (70 ms); nothing from here on leaves the machine.
  delete process.env.NODE_EXTRA_CA_CERTS;
}

/**
 * When the script began that a person has called, as a value of performance.now(): on an older Node it was another process,
 * which has installed everything first.
 */
export function scriptStartedAtMs() {
  const { MUSTER_SCRIPT_STARTED_MS: text } = process.env;
  delete process.env.MUSTER_SCRIPT_STARTED_MS;
  return Number(text ?? performance.timeOrigin) - performance.timeOrigin;
}

/** @param {string} path @returns {{ packages: Record<string, LockedPackage> } | null} */
function readLock(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null;
}

function isInstalled() {
  const wanted = readLock(join(root, 'package-lock.json'));
  const present = readLock(join(root, 'node_modules/.package-lock.json'));
  if (wanted === null)
    throw new Stop('package-lock.json is missing; restore it with `git checkout package-lock.json`.');
  return present !== null && isSameInstall(wanted.packages, present.packages);
}

/**
 * Compares by content: times of files say nothing after a `git checkout`. npm writes its own record of what is installed
 * as the very last step, so an interrupted install counts as none.
 * @typedef {{ version?: string, integrity?: string, optional?: boolean, link?: boolean }} LockedPackage
 * @param {Record<string, LockedPackage>} wanted
 * @param {Record<string, LockedPackage>} present
 */
export function isSameInstall(wanted, present) {
  return Object.entries(wanted).every(([path, { version, integrity, optional, link }]) => {
    const found = present[path];
    if (path === '') return true; // the workspace itself
    if (found === undefined) return optional === true; // another platform's binary
    return found.version === version && found.integrity === integrity && found.link === link;
  });
}

async function install() {
  // Without our own folder: npm would run on the very Node binary that it is about to delete and unpack again.
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(root));
  await step('Installing packages (npm ci)', async () => {
    // Half an installation is worse than none, and npm has helpers of its own: all of it has ended before this ends.
    const interrupted = disposableInterruption();
    const { code, output } = await captureGroup(
      'npm',
      ['ci', '--no-audit', '--no-fund', '--loglevel=error'],
      { cwd: root, env: { ...process.env, PATH: path.join(delimiter) } },
      interrupted.signal,
    );
    interrupted.dispose();
    interrupted.signal.throwIfAborted();
    if (code === 127)
      throw new Stop('npm is not on PATH. Install it (Debian: apt-get install npm), then run this again.', 2);
    if (code !== 0) throw new Stop(explainNpmFailure(output));
  });
}

/** @param {string} output what npm printed before it gave up */
export function explainNpmFailure(output) {
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|network/i.test(output)) {
    return `${tail(output)}\n\nnpm cannot reach its registry. Check the network and the address that
\`npm config get registry\` prints, then run this again; what was fetched is kept in npm's cache.`;
  }
  return `${tail(output)}\n\n\`npm ci\` failed. Fix what it reports above, then run this again.`;
}

/** @param {string} script @returns {Promise<number>} its exit code */
function runUnderNode24(script) {
  const node = join(root, `node_modules/node-linux-${process.arch}/bin/node`);
  if (!existsSync(node)) {
    throw new Stop(
      `Muster needs Node ${nodeMajorMin} or newer, this is ${process.version}, and npm brings none for ` +
        `${process.platform} ${process.arch}. Install it from https://nodejs.org, then run this again.`,
      2,
    );
  }
  return new Promise((resolve) => {
    const env = { ...process.env, MUSTER_SCRIPT_STARTED_MS: String(performance.timeOrigin) };
    const child = spawn(node, [script, ...process.argv.slice(2)], { stdio: 'inherit', env });
    // The child decides what a signal means and cleans up; this process only has to outlive it. A terminal sends Ctrl-C
    // to both, so it is not passed on here.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', () => child.kill('SIGTERM'));
    process.on('SIGHUP', () => child.kill('SIGHUP'));
    child.on('close', (code, signal) => resolve(exitCode(code, signal)));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void exitWith(async () => {
    await prepare(import.meta.url);
    const { build } = await import('./build.mjs');
    await build();
    process.stderr.write('Ready. `./muster --help` lists the commands.\n');
    return 0;
  });
}
