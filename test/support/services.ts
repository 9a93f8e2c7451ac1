/**
 * What tests need from outside the repository: servers, free ports, folders, and a way to wait. Everything opened here is
 * closed after the test file that opened it, in reverse order, also when the test failed half-way.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import { patienceMs } from './patience.ts';

/** Something the machine lacks. The message says how to get it. */
export class MissingServiceError extends Error {
  override readonly name = 'MissingServiceError';
}

const installWith = '`npm test` as root on Debian or Ubuntu installs it';

// ---- Closing what was opened

type Release = () => void | Promise<void>;
const releases: Release[] = [];

/** Runs after each test file (test/support/eachFile.ts), the newest first. */
export async function releaseAll(): Promise<void> {
  for (let release = releases.pop(); release !== undefined; release = releases.pop()) await release();
}

/** Registers for the end of the test file and returns a function that does it now, once. */
function releasable(release: Release): () => Promise<void> {
  releases.push(release);
  return async () => {
    const index = releases.indexOf(release);
    if (index === -1) return;
    releases.splice(index, 1);
    await release();
  };
}

// ---- Waiting, ports, folders

export interface WaitOptions<T> {
  /** Default: `patienceMs`. */
  readonly timeoutMs?: number;
  readonly intervalMs?: number;
  /** Default: any truthy value will do. */
  readonly until?: (seen: T) => boolean;
}

/**
 * Polls `probe` until its result is what the test waits for, and returns it. A probe that throws has not seen it yet.
 * @throws {Error} after `timeoutMs`, with the last state or error seen.
 */
export async function waitFor<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeoutMs = patienceMs, intervalMs = 20, until = Boolean }: WaitOptions<T> = {},
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    let last: string;
    try {
      const seen = await probe();
      if (until(seen)) return seen;
      last = inspect(seen, { depth: 6, breakLength: 120, maxStringLength: 4_000 });
    } catch (error) {
      last = `error: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (performance.now() >= deadlineMs)
      throw new Error(`${what}: not within ${timeoutMs} ms; last seen: ${last}`);
    await delay(intervalMs);
  }
}

/** A TCP port on 127.0.0.1 that nobody listened on a moment ago. Prefer port 0 where a program can report its port. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export interface TempDir {
  readonly path: string;
  remove(): Promise<void>;
}

/** An empty folder that is gone after the test file. Its path is short, so that unix sockets fit in it. */
export function tempDir(name = 'test'): TempDir {
  return tempDirIn(tmpdir(), name);
}

/** The same on a disk, for tests of what differs there: the folder of a unit test is in memory. */
export function tempDirOnDisk(name: string): TempDir {
  return tempDirIn('/var/tmp', name);
}

function tempDirIn(parent: string, name: string): TempDir {
  const path = mkdtempSync(join(parent, `muster-${name}-`));
  return { path, remove: releasable(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 })) };
}

// ---- Programs of the machine

/** For the environment of programs that are started from their sources: where `npm test` keeps these compiled. */
export const compileCache: Readonly<Record<string, string>> =
  process.env.NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Debian puts servers in /usr/sbin, which is not on every user's PATH. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

/** @throws {MissingServiceError} */
export function natsServerProgram(): string {
  const named = process.env.NATS_SERVER_BIN;
  if (named !== undefined && !isExecutable(named)) {
    throw new MissingServiceError(`NATS_SERVER_BIN names ${named}, which is not an executable file`);
  }
  const program = named ?? findProgram('nats-server');
  if (program === null) {
    throw new MissingServiceError(`nats-server is not on PATH (Debian package nats-server; ${installWith})`);
  }
  return program;
}

/**
 * A Python that can `import torch`: the one on PATH, or Debian's own, which a version manager may hide.
 * @throws {MissingServiceError}
 */
export function pythonWithTorch(): Promise<string> {
  return pythonWith(['torch'], 'python3-torch');
}

/** The same with scikit-learn, pandas and xgboost. @throws {MissingServiceError} */
export function pythonWithSklearn(): Promise<string> {
  return pythonWith(['sklearn', 'pandas', 'xgboost'], 'python3-sklearn python3-pandas python3-xgboost');
}

async function pythonWith(modules: readonly string[], packages: string): Promise<string> {
  const candidates = [findProgram('python3'), '/usr/bin/python3'].filter(
    (path) => path !== null && isExecutable(path),
  );
  for (const python of new Set(candidates)) {
    if (python !== null && (await findsModules(python, modules))) return python;
  }
  throw new MissingServiceError(
    `no python3 here can import ${modules.join(' and ')} (Debian: ${packages}; ${installWith})`,
  );
}

/** Looks the modules up without importing them, which takes seconds. */
function findsModules(python: string, modules: readonly string[]): Promise<boolean> {
  const code =
    'import importlib.util, sys; sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))';
  return new Promise((resolve) => {
    const child = spawn(python, ['-c', code, ...modules], { stdio: 'ignore' });
    child.on('error', () => resolve(false));
    child.on('close', (exitCode) => resolve(exitCode === 0));
  });
}

/**
 * A busybox that runs in an otherwise empty container: the tests make their images from it.
 * @throws {MissingServiceError}
 */
export function staticBusybox(): string {
  const program = findProgram('busybox');
  if (program === null || !isStaticallyLinked(readFileSync(program))) {
    throw new MissingServiceError(
      `no statically linked busybox on PATH (Debian package busybox-static; ${installWith})`,
    );
  }
  return program;
}

/** @throws {MissingServiceError} */
export function cCompiler(): string {
  const program = findProgram('gcc');
  // The compiler alone finds no headers: those of the C library are a package of their own.
  if (program === null || !existsSync('/usr/include/stdlib.h')) {
    throw new MissingServiceError(`no C compiler here (Debian packages gcc libc6-dev; ${installWith})`);
  }
  return program;
}

/** @throws {MissingServiceError} */
export function sshServer(): string {
  const program = findProgram('sshd');
  if (program === null || findProgram('ssh') === null || findProgram('ssh-keygen') === null) {
    throw new MissingServiceError(
      `no OpenSSH here (Debian packages openssh-client openssh-server; ${installWith})`,
    );
  }
  return program;
}

/** @throws {MissingServiceError} */
export function prometheusPrograms(): { readonly prometheus: string; readonly promtool: string } {
  const prometheus = findProgram('prometheus');
  const promtool = findProgram('promtool');
  if (prometheus === null || promtool === null) {
    throw new MissingServiceError(`no Prometheus here (Debian package prometheus; ${installWith})`);
  }
  return { prometheus, promtool };
}

/** @throws {MissingServiceError} */
export function alertmanagerProgram(): string {
  const program = findProgram('prometheus-alertmanager') ?? findProgram('alertmanager');
  if (program === null) {
    throw new MissingServiceError(
      `no Alertmanager here (Debian package prometheus-alertmanager; ${installWith})`,
    );
  }
  return program;
}

/**
 * systemd's own reader of units. It needs no systemd that runs.
 * @throws {MissingServiceError}
 */
export function systemdAnalyze(): string {
  const program = findProgram('systemd-analyze');
  if (program === null) {
    throw new MissingServiceError(`no systemd-analyze on PATH (Debian package systemd; ${installWith})`);
  }
  return program;
}

/**
 * A library that shows a process another time of day, and no other monotonic clock.
 * @throws {MissingServiceError}
 */
export function faketimeLibrary(): string {
  const folders = ['lib', 'lib64', 'lib/x86_64-linux-gnu', 'lib/aarch64-linux-gnu'];
  const paths = folders.map((folder) => `/usr/${folder}/faketime/libfaketimeMT.so.1`);
  const path = paths.find((each) => existsSync(each));
  if (path === undefined)
    throw new MissingServiceError(`no libfaketime here (Debian package libfaketime; ${installWith})`);
  return path;
}

/** Of a 64-bit ELF file: it names no dynamic loader (no program header of type PT_INTERP). */
export function isStaticallyLinked(file: Buffer): boolean {
  const interpreter = 3;
  const isElf64 = file.length > 64 && file.readUInt32BE(0) === 0x7f454c46 && file[4] === 2;
  if (!isElf64) return false;
  const tableOffset = Number(file.readBigUInt64LE(32));
  const entrySize = file.readUInt16LE(54);
  const entryCount = file.readUInt16LE(56);
  return !Array.from({ length: entryCount }, (_, index) =>
    file.readUInt32LE(tableOffset + index * entrySize),
  ).includes(interpreter);
}

// ---- Docker

/** Where the tests and the agent look for the engine. */
export const dockerSocketPath = '/var/run/docker.sock';

/** True when an engine answers. */
export function dockerAnswers(socketPath: string = dockerSocketPath): Promise<boolean> {
  return new Promise((resolve) => {
    const ping = request({ socketPath, path: '/_ping', timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.on('timeout', () => ping.destroy(new Error('no answer')));
    ping.on('error', () => resolve(false));
    ping.end();
  });
}

/**
 * The socket of a running Docker engine.
 * @throws {MissingServiceError}
 */
export async function dockerSocket(): Promise<string> {
  if (await dockerAnswers()) return dockerSocketPath;
  throw new MissingServiceError(
    `no Docker engine answers at ${dockerSocketPath}; \`npm test\` as root starts one for its tests, ` +
      'or start it yourself: systemctl start docker (without systemd: dockerd &)',
  );
}

// ---- NATS

export interface NatsServer {
  /** `nats://127.0.0.1:<port>`; the same after a restart. */
  readonly url: string;
  /** Ends it the hard or the polite way and waits until it is gone. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /** Starts it again on the same port and store; kills it first when it still runs. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface NatsOptions {
  /** Absolute; holds the JetStream data and survives restarts. */
  readonly storeDir: string;
  readonly port?: number;
  /** Without these everybody gets in. */
  readonly user?: string;
  readonly password?: string;
  /** Text of its configuration, such as who may get in and its certificate. */
  readonly config?: string;
}

/**
 * A real nats-server with JetStream on 127.0.0.1, ready to serve when this resolves.
 * @throws {MissingServiceError}
 */
export async function startNats({
  storeDir,
  port,
  user,
  password,
  config,
}: NatsOptions): Promise<NatsServer> {
  const program = natsServerProgram();
  const chosenPort = port ?? (await freePort());
  const login = user === undefined ? [] : ['--user', user, '--pass', password ?? ''];
  const configPath = `${storeDir}.conf`;
  if (config !== undefined) writeFileSync(configPath, config);
  const configured = config === undefined ? [] : ['-c', configPath];
  const args = ['-js', '-a', '127.0.0.1', '-p', String(chosenPort), '-sd', storeDir, ...login, ...configured];
  let server: ChildProcess | null = null;

  const start = async () => {
    let log = '';
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    server = child;
    child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-8_000)));
    await waitFor(
      'nats-server is ready',
      () => {
        if (child.exitCode !== null) throw new Error(`nats-server ended with ${child.exitCode}:\n${log}`);
        return log.includes('Server is ready') || log;
      },
      { until: (seen) => seen === true },
    );
  };
  const kill = async (signal: 'SIGKILL' | 'SIGTERM') => {
    const child = server;
    server = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  };

  const stop = releasable(() => kill('SIGKILL'));
  await start();
  return {
    url: `nats://127.0.0.1:${chosenPort}`,
    kill,
    restart: async () => {
      await kill('SIGKILL');
      await start();
    },
    stop,
  };
}
