/** The processes of `muster up`: what to start for each, at which addresses and with which credentials. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { agentNodeOptions } from '@muster/agent/nodeOptions';
import type { CredentialView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import type { ProgramEnvironment } from '../environment.ts';
import type { ChildPlan } from './child.ts';

export interface UpOptions {
  /** Absolute. */
  readonly dataDir: string;
  readonly nodeCount: number;
  /** Simulated GPUs per node; null: what the machine has. */
  readonly gpus: number | null;
  /** CPUs per node; null: all of the machine's. */
  readonly cpus: number | null;
  readonly listen: string;
  /** Names and addresses that other machines call this one by, beside its own. */
  readonly advertise: readonly string[];
  /** Flags of the coordinator that it is given as they are. */
  readonly coordinatorArguments: readonly string[];
  /** `host:port` of the coordinator's pages for Prometheus; null: none. */
  readonly httpListen: string | null;
  /** `host:port` of its HTTP API; null: none. */
  readonly apiListen: string | null;
  /** The pages of the agents; null: none. */
  readonly metricsListen: string | null;
  /** What jobs may mount into containers besides home and working directory, as `muster agent --mount-root` takes it. */
  readonly mountRoots: readonly string[];
}

export function nodeNames({ nodeCount }: UpOptions): readonly string[] {
  return Array.from({ length: nodeCount }, (_, index) => `node-${index + 1}`);
}

/** @param listen asked before each start: once a port was chosen, it stays */
export function coordinatorPlan(
  options: UpOptions,
  environment: ProgramEnvironment,
  listen: () => string,
): ChildPlan {
  return {
    title: 'the coordinator',
    logPath: join(options.dataDir, 'coordinator.log'),
    async prepare() {
      const http = ['--http', options.httpListen ?? 'off', '--api', options.apiListen ?? 'off'];
      const names = options.advertise.flatMap((name) => ['--advertise', name]);
      const place = ['--data', options.dataDir, '--listen', listen(), ...names];
      // A coordinator and agents on one machine are never cut off from each other.
      const flags = [
        'coordinator',
        ...place,
        '--local-leases',
        'off',
        ...http,
        ...options.coordinatorArguments,
      ];
      return { argv: [...environment.programCommand, ...flags], variables: environment.variables };
    },
  };
}

export function agentPlan(
  name: string,
  options: UpOptions,
  environment: ProgramEnvironment,
  coordinator: { readonly address: string; readonly caPath: string | null },
  api: () => Pick<MusterApi, 'createJoinToken' | 'listCredentials'>,
  wallMs: () => number,
): ChildPlan {
  const agentsDir = join(options.dataDir, 'agents');
  const agentDir = join(agentsDir, name);
  return {
    title: name,
    logPath: join(agentsDir, `${name}.log`),
    async prepare() {
      mkdirSync(agentDir, { recursive: true, mode: 0o700 });
      const gpus = options.gpus === null ? [] : ['--gpus', String(options.gpus)];
      const cpus = options.cpus === null ? [] : ['--cpus', String(options.cpus)];
      const { address, caPath } = coordinator;
      // Also for agents that joined before there was TLS, which know no CA.
      const ca = caPath === null ? [] : ['--ca', caPath];
      const place = ['--data', agentDir, '--name', name, '--coordinator', address, ...ca];
      const metrics = ['--metrics', options.metricsListen ?? 'off'];
      const flags = [
        'agent',
        ...place,
        ...gpus,
        ...cpus,
        ...metrics,
        ...ownMachineFlags(options, environment),
      ];
      // In the environment, because arguments are visible to every user of the machine.
      const joinToken = await joinTokenFor(name, { agentDir, encrypted: caPath !== null }, api(), wallMs());
      const token = joinToken === null ? {} : { MUSTER_JOIN_TOKEN: joinToken };
      const nodeOptions = `${environment.variables['NODE_OPTIONS'] ?? ''} ${agentNodeOptions}`.trim();
      return {
        argv: [...environment.programCommand, ...flags],
        variables: { ...environment.variables, NODE_OPTIONS: nodeOptions, ...token },
      };
    },
  };
}

/**
 * The user who starts `muster up` owns these nodes and is, as a rule, the one who submits: containers write files as they would,
 * into what is theirs. Not into what Muster keeps, where the admin token is.
 */
function ownMachineFlags(
  { dataDir, mountRoots }: UpOptions,
  { uid, gid, home, workingDir }: ProgramEnvironment,
): readonly string[] {
  const own = [home, workingDir].filter((path) => path !== '/');
  return [
    ...[...new Set([...own, ...mountRoots])].flatMap((path) => ['--mount-root', path]),
    '--mount-deny',
    dataDir,
    '--root-tasks',
    'allow',
    '--container-user',
    uid === 0 ? 'image' : `${uid}:${gid}`,
  ];
}

type JoinApi = Pick<MusterApi, 'createJoinToken' | 'listCredentials'>;

/**
 * The user who starts `muster up` has the admin token, so its agents join again where their credential is no longer valid: it
 * expired while the machine was off for weeks, or is from the time before the coordinator had TLS.
 * @param nowMs wall clock
 * @returns null: the agent's credential is valid
 */
async function joinTokenFor(
  name: string,
  { agentDir, encrypted }: { readonly agentDir: string; readonly encrypted: boolean },
  api: JoinApi,
  nowMs: number,
): Promise<string | null> {
  const kept = hasJoined(agentDir, encrypted);
  const isGood = ({ kind, node, expiresAtMs }: CredentialView) =>
    kind === 'agent' && node === name && (expiresAtMs === null || expiresAtMs > nowMs);
  if (kept && (await api.listCredentials()).some(isGood)) return null;
  return (await api.createJoinToken(name, true)).token;
}

/** Whether the agent has a credential of its own, of the kind that the coordinator asks for. */
function hasJoined(agentDir: string, encrypted: boolean): boolean {
  try {
    const stored = JSON.parse(readFileSync(join(agentDir, 'credential'), 'utf8')) as {
      readonly joined?: unknown;
      readonly certificate?: unknown;
    };
    return stored.joined === true && (typeof stored.certificate === 'string') === encrypted;
  } catch {
    return false;
  }
}

/**
 * An address that a process started next can listen on.
 * @param wanted `host:port`, taken when it is free
 * @returns `wanted`, or its host with a free port
 */
export async function freeAddress(wanted: string): Promise<string> {
  const host = wanted.slice(0, wanted.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
  const port = Number(wanted.slice(wanted.lastIndexOf(':') + 1));
  const found = (await listenOnce(host, port)) ?? (await listenOnce(host, 0));
  // Without any free port, the error message of the process itself is the best one.
  return found === null ? wanted : `${host.includes(':') ? `[${host}]` : host}:${found}`;
}

/** @returns the port; null when it cannot be had */
function listenOnce(host: string, port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ host, port }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? null) : null));
    });
  });
}

/**
 * Where a daemon serves by default what nobody has asked for: no cluster may fail to start because of it.
 * @param usual taken when it is free, unless `anyPort`
 * @param print receives a sentence where it is another one
 */
export async function addressOfPage(
  usual: string,
  {
    anyPort,
    what,
    print,
  }: { readonly anyPort: boolean; readonly what: string; print(sentence: string): void },
): Promise<string> {
  if (anyPort) return freeAddress(usual.replace(/:\d+$/, ':0'));
  const found = await freeAddress(usual);
  if (found !== usual) print(`${usual} is in use; ${what} are at ${found}`);
  return found;
}
