/** The only reader of environment variables and of where this program lies. Everything else gets the result. */

import { readFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { nvmlReaderCommand } from '@muster/agent/gpus/nvml/command';
import { guardCommand } from '@muster/agent/guard/command';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import type { ServiceManager } from './serviceManager.ts';

export interface ProgramEnvironment {
  readonly workingDir: string;
  readonly hostname: string;
  readonly home: string;
  /** Whose process this is. */
  readonly uid: number;
  readonly gid: number;
  /** File mode mask of this process, 0 to 0o777; null: not known. */
  readonly umask: number | null;
  /** MUSTER_ADDR: `host:port` of the coordinator. */
  readonly address: string | null;
  /** MUSTER_TOKEN. */
  readonly token: string | null;
  /** MUSTER_CA: file with the certificate of the coordinator's CA. */
  readonly caPath: string | null;
  /** MUSTER_CONTEXT: name of a saved login. */
  readonly contextName: string | null;
  /** Where `muster login` saves what it got. */
  readonly contextsPath: string;
  /** MUSTER_DATA: the data directory of a coordinator on this machine. */
  readonly dataDir: string | null;
  /** MUSTER_JOIN_TOKEN, for agents. */
  readonly joinToken: string | null;
  /** MUSTER_CHECKPOINT_ROOTS, for agents: directories with `:` between them. */
  readonly checkpointRoots: readonly string[];
  /** systemd, when it started this process and wants notifications; else null. */
  readonly serviceManager: ServiceManager | null;
  /** Where `muster up` keeps its data by default. */
  readonly defaultDataDir: string;
  /** Written by `muster up`, so that later calls find its coordinator. */
  readonly lastUpPath: string;
  readonly colour: 'always' | 'never' | 'auto';
  /** The terminal shows more than ASCII, by the locale. */
  readonly unicode: boolean;
  /** MUSTER_DEBUG: show stack traces. */
  readonly debug: boolean;
  /**
   * How the user typed the name of this program, for hints that can be typed as they are: `muster`, `./muster`,
   * `~/muster/muster`. `packages/cli/bin/muster` finds it out.
   */
  readonly programName: string;
  /** The folder of this program's code: of the bundles, or of the sources. */
  readonly programDir: string;
  /** argv that starts this program again; arguments follow. */
  readonly programCommand: readonly string[];
  /** argv that starts a guard; its options follow. */
  readonly guardCommand: readonly string[];
  /** argv that starts the reader of NVML; its options follow. */
  readonly nvmlReaderCommand: readonly string[];
  /**
   * The variables themselves, for child processes and `--env NAME`; without those that are for this process alone: tokens, CA,
   * and where systemd listens.
   */
  readonly variables: Readonly<Record<string, string>>;
}

/** For this process alone. */
export const privateVariables = [
  'MUSTER_TOKEN',
  'MUSTER_JOIN_TOKEN',
  'NOTIFY_SOCKET',
  'WATCHDOG_USEC',
  'WATCHDOG_PID',
  'MUSTER_CALLED_AS',
] as const;

type Variables = Readonly<Record<string, string | undefined>>;

/** @param scriptPath the file Node was started with */
export function readEnvironment(
  variables: Variables,
  scriptPath: string,
  workingDir: string,
): ProgramEnvironment {
  const home = variables['HOME'] || homedir();
  const { MUSTER_TOKEN: _token, MUSTER_JOIN_TOKEN: _joinToken, MUSTER_CA: _ca, ...rest } = variables;
  const { NOTIFY_SOCKET: notifySocket, WATCHDOG_USEC: watchdog, WATCHDOG_PID: watched, ...others } = rest;
  const { MUSTER_CALLED_AS: calledAs, ...shared } = others;
  return Object.freeze({
    workingDir,
    hostname: hostname(),
    home,
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    umask: umaskNow(),
    address: variables['MUSTER_ADDR'] || null,
    token: variables['MUSTER_TOKEN'] || null,
    caPath: variables['MUSTER_CA'] || null,
    contextName: variables['MUSTER_CONTEXT'] || null,
    contextsPath: join(baseDir(variables['XDG_CONFIG_HOME'], home, '.config'), 'muster', 'contexts.json'),
    dataDir: variables['MUSTER_DATA'] || null,
    joinToken: variables['MUSTER_JOIN_TOKEN'] || null,
    checkpointRoots: (variables['MUSTER_CHECKPOINT_ROOTS'] ?? '').split(':').filter((path) => path !== ''),
    serviceManager: notifySocket ? { notifySocket, watchdogMs: watchdogMs(watchdog, watched) } : null,
    defaultDataDir: join(baseDir(variables['XDG_DATA_HOME'], home, '.local/share'), 'muster'),
    lastUpPath: join(baseDir(variables['XDG_STATE_HOME'], home, '.local/state'), 'muster', 'last-up.json'),
    colour: colourChoice(variables),
    unicode: /utf-?8/i.test(variables['LC_ALL'] || variables['LC_CTYPE'] || variables['LANG'] || ''),
    debug: (variables['MUSTER_DEBUG'] || '0') !== '0',
    programName: calledAs || 'muster',
    programDir: import.meta.dirname,
    programCommand: [process.execPath, ...closedNodeFlags, scriptPath],
    guardCommand: guardCommand(process.execPath, besideBundle('guard.mjs', 'guard/main.ts')),
    nvmlReaderCommand: nvmlReaderCommand(
      process.execPath,
      besideBundle('nvml-reader.mjs', 'gpus/nvml/main.ts'),
    ),
    variables: Object.fromEntries(
      Object.entries(shared).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  });
}

/** As the kernel reports it: `process.umask()` can only be read by setting it. */
function umaskNow(): number | null {
  try {
    const octal = /^Umask:\s*([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return octal === undefined ? null : Number.parseInt(octal, 8);
  } catch {
    return null;
  }
}

/** In the environment of a process that another one was started from, it is meant for that one. */
function watchdogMs(microseconds: string | undefined, pid: string | undefined): number | null {
  const value = Number(microseconds) / 1000;
  return value > 0 && (pid === undefined || pid === String(process.pid)) ? value : null;
}

/** The XDG rule: a relative path there must be ignored. */
function baseDir(configured: string | undefined, home: string, fallback: string): string {
  return configured !== undefined && isAbsolute(configured) ? configured : join(home, fallback);
}

/** https://no-color.org and the FORCE_COLOR convention; an empty value counts as unset. */
function colourChoice(variables: Variables): ProgramEnvironment['colour'] {
  if (variables['NO_COLOR']) return 'never';
  const forced = variables['FORCE_COLOR'];
  if (forced) return forced === '0' || forced === 'false' ? 'never' : 'always';
  return variables['TERM'] === 'dumb' ? 'never' : 'auto';
}

/** The build puts the agent's other programs beside the bundle; in the source tree they are the agent's. */
function besideBundle(bundled: string, source: string): string {
  return import.meta.filename.endsWith('.ts')
    ? join(import.meta.dirname, '../../agent/src', source)
    : join(import.meta.dirname, bundled);
}
