// What `npm test` needs from the machine: programs of its distribution, and a running Docker engine.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  alertmanagerProgram,
  cCompiler,
  dockerAnswers,
  dockerSocketPath,
  faketimeLibrary,
  findProgram,
  MissingServiceError,
  natsServerProgram,
  prometheusPrograms,
  pythonWithSklearn,
  pythonWithTorch,
  sshServer,
  staticBusybox,
  systemdAnalyze,
  waitFor,
} from '../test/support/services.ts';
import { capture, endChild, hasEnded } from './processes.mjs';
import { Stop, step, tail } from './terminal.mjs';

/** @typedef {{ what: string, packages: readonly string[], isMissing: () => Promise<boolean> }} Need */

/** With which tests make machines with networks of their own, and faults in them. */
const hostPrograms = ['unshare', 'nsenter', 'setpriv', 'mount', 'ip', 'tc', 'iptables'];

const isRoot = process.getuid?.() === 0;

/** @type {readonly Need[]} */
const needs = [
  {
    what: 'a Docker engine',
    packages: ['docker.io', 'iptables', 'iproute2'],
    isMissing: async () => !(await dockerAnswers()) && !canStartDocker(),
  },
  {
    what: 'the programs that make hosts of namespaces',
    packages: ['util-linux', 'mount', 'iproute2', 'iptables'],
    isMissing: async () => hostPrograms.some((program) => findProgram(program) === null),
  },
  { what: 'nats-server', packages: ['nats-server'], isMissing: () => throwsMissing(natsServerProgram) },
  {
    what: 'PyTorch for python3',
    packages: ['python3-torch'],
    isMissing: () => throwsMissing(pythonWithTorch),
  },
  {
    what: 'scikit-learn, pandas and xgboost for python3',
    packages: ['python3-sklearn', 'python3-pandas', 'python3-xgboost'],
    isMissing: () => throwsMissing(pythonWithSklearn),
  },
  {
    what: 'a statically linked busybox',
    packages: ['busybox-static'],
    isMissing: () => throwsMissing(staticBusybox),
  },
  { what: 'a C compiler', packages: ['gcc', 'libc6-dev'], isMissing: () => throwsMissing(cCompiler) },
  {
    what: 'Prometheus, with promtool',
    packages: ['prometheus'],
    isMissing: () => throwsMissing(prometheusPrograms),
  },
  {
    what: 'Alertmanager',
    packages: ['prometheus-alertmanager'],
    isMissing: () => throwsMissing(alertmanagerProgram),
  },
  {
    what: 'OpenSSH, client and server',
    packages: ['openssh-client', 'openssh-server'],
    isMissing: () => throwsMissing(sshServer),
  },
  { what: 'libfaketime', packages: ['libfaketime'], isMissing: () => throwsMissing(faketimeLibrary) },
  { what: 'systemd-analyze', packages: ['systemd'], isMissing: () => throwsMissing(systemdAnalyze) },
];

function canStartDocker() {
  return isRoot && ['dockerd', 'iptables', 'ip'].every((program) => findProgram(program) !== null);
}

/** @param {() => unknown} find */
async function throwsMissing(find) {
  try {
    await find();
    return false;
  } catch (error) {
    if (error instanceof MissingServiceError) return true;
    throw error;
  }
}

async function missingNeeds() {
  const missing = await Promise.all(needs.map((need) => need.isMissing()));
  return needs.filter((_, index) => missing[index]);
}

/** Installs what is missing where it can; otherwise says what that is and how to get it, and stops. */
export async function equipMachine() {
  const missing = await missingNeeds();
  if (missing.length === 0) return;
  const packages = missing.flatMap((need) => need.packages);
  if (!isRoot || findProgram('apt-get') === null) throw new Stop(explainMissing(missing), 2);

  await step(`Installing ${packages.join(', ')} (apt-get)`, () => installPackages(packages));
  const still = await missingNeeds();
  if (still.length > 0) {
    const what = still.map((need) => need.what).join(', ');
    throw new Stop(`apt-get installed ${packages.join(', ')}, but the tests still cannot find ${what}.`, 2);
  }
}

/** @param {readonly Need[]} missing */
export function explainMissing(missing) {
  const packages = missing.flatMap((need) => need.packages);
  const lines = ['The tests run against real services and skip none. This machine lacks:'];
  for (const need of missing) lines.push(`  - ${need.what}`);
  lines.push(
    'On Debian or Ubuntu this installs them:',
    `  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${packages.join(' ')}`,
  );
  if (packages.includes('docker.io')) {
    lines.push(
      `If Docker is installed, its engine must answer at ${dockerSocketPath} for this user:`,
      '  sudo systemctl start docker && sudo usermod -aG docker "$USER"   (then log in again)',
    );
  }
  lines.push('As root on Debian or Ubuntu, `npm test` does all of this by itself.');
  return lines.join('\n');
}

/** @param {readonly string[]} packages */
async function installPackages(packages) {
  const lockWait = ['-o', 'DPkg::Lock::Timeout=300'];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
    const { code, output } = await capture('apt-get', [...lockWait, ...args], { env });
    if (code !== 0) {
      throw new Stop(
        `${output.trimEnd()}\n\n\`apt-get ${args.join(' ')}\` failed; mend what it says, then run this again.`,
        2,
      );
    }
  }
}

/**
 * Makes sure that a Docker engine answers. One that is running is used as it is; otherwise one is started with its data
 * in a temporary folder, so that nothing of it is left afterwards.
 * @returns {Promise<() => Promise<void>>} stops the engine if this call has started it
 */
export async function ensureDocker() {
  if (await dockerAnswers()) return async () => {};
  return await step('Starting a Docker engine for the tests', startDocker);
}

async function startDocker() {
  const folder = mkdtempSync(join(tmpdir(), 'muster-docker-'));
  const logPath = join(folder, 'dockerd.log');
  const log = openSync(logPath, 'a');
  const daemon = spawn(
    findProgram('dockerd') ?? 'dockerd',
    [
      `--host=unix://${dockerSocketPath}`,
      `--data-root=${join(folder, 'data')}`,
      `--exec-root=${join(folder, 'run')}`,
      `--pidfile=${join(folder, 'dockerd.pid')}`,
    ],
    // A session of its own: Ctrl-C must reach it after the tests, which need it to clean up.
    { detached: true, stdio: ['ignore', log, log] },
  );
  const stop = async () => {
    if (!(await endChild(daemon, 30_000))) killContainerd(folder);
    await removeEngineFolder(folder);
  };
  try {
    await waitFor('the Docker engine answers', () => hasEnded(daemon) || dockerAnswers(), {
      timeoutMs: 60_000,
    });
    if (hasEnded(daemon)) throw new Error('dockerd ended');
  } catch (error) {
    const said = existsSync(logPath) ? tail(readFileSync(logPath, 'utf8')) : '';
    await stop();
    throw new Stop(
      `${said}\n\nThe Docker engine did not start (${error instanceof Error ? error.message : String(error)}).`,
      2,
    );
  }
  return stop;
}

/**
 * An engine that has just ended can leave file systems of its containers mounted: taken off first, or their mount points
 * are busy. What cannot be removed even so is said, and changes nothing about how the tests went.
 * @param {string} folder
 */
async function removeEngineFolder(folder) {
  for (const path of mountPointsUnder(folder).reverse()) await capture('umount', ['--lazy', path]);
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  } catch (error) {
    console.error(
      `${folder} could not be removed: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/**
 * @param {string} folder
 * @returns {string[]} in the order of mounting
 */
function mountPointsUnder(folder) {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${folder}/`));
}

/**
 * dockerd stops its own containerd, unless it was killed.
 * @param {string} folder
 */
function killContainerd(folder) {
  const pidFile = join(folder, 'run/containerd/containerd.pid');
  if (existsSync(pidFile)) process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL');
}
