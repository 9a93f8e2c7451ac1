/** Machines that were added by ssh: `hosts.json` beside the saved logins, mode 0600. By context, then by node. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeFileDurably } from '@muster/common/files';
import type { ConnectionFlags } from '../connection.ts';
import { localContext, readContexts } from '../contexts.ts';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, fileErrorReason } from '../errors.ts';

export interface AddedHost {
  /** `[user@]host`, as `ssh` takes it. */
  readonly ssh: string;
  /** It reaches the coordinator through a tunnel that a unit of this machine keeps up. */
  readonly tunnel: boolean;
  /** The agent runs without root, as this user of the machine. Absent: as a service of the system. */
  readonly user?: boolean;
}

type HostsByNode = Readonly<Record<string, AddedHost>>;
type AddedHosts = Readonly<Record<string, HostsByNode>>;

type Place = Pick<ProgramEnvironment, 'contextsPath'>;

export function hostsPath({ contextsPath }: Place): string {
  return join(dirname(contextsPath), 'hosts.json');
}

/**
 * Under which name the machines of a cluster stand in the file: the saved login that a call uses; `local` for the coordinator of
 * this machine, and the address of one that flags or variables name.
 * @throws {CliError} as `readContexts` does
 */
export function contextKey(
  flags: ConnectionFlags,
  environment: Pick<
    ProgramEnvironment,
    'contextsPath' | 'programName' | 'contextName' | 'address' | 'dataDir'
  >,
): string {
  const named = flags.context ?? environment.contextName;
  if (named !== null) return named;
  const address = flags.addr ?? environment.address;
  const isFree = address === null && flags.data === undefined && environment.dataDir === null;
  if (!isFree && address === null) return localContext;
  const { current, contexts } = readContexts(environment);
  if (address === null) return current ?? localContext;
  return Object.entries(contexts).find(([, saved]) => saved.address === address)?.[0] ?? address;
}

/** @throws {CliError} for a damaged file */
export function hostsOf(key: string, place: Place): HostsByNode {
  const hosts = readHosts(place);
  return Object.hasOwn(hosts, key) ? (hosts[key] ?? {}) : {};
}

/** @param host null: the node is no longer there @throws {CliError} */
export function noteHost(key: string, node: string, host: AddedHost | null, place: Place): void {
  const hosts = readHosts(place);
  const { [node]: _earlier, ...others } = hostsOf(key, place);
  const nodes = host === null ? others : { ...others, [node]: host };
  const path = hostsPath(place);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileDurably(path, `${JSON.stringify({ ...hosts, [key]: nodes }, null, 2)}\n`, 0o600);
  } catch (error) {
    throw new CliError(`cannot write ${path}: ${fileErrorReason(error) ?? String(error)}`, { cause: error });
  }
}

function readHosts(place: Place): AddedHosts {
  const path = hostsPath(place);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {};
    throw new CliError(`cannot read ${path}: ${fileErrorReason(error) ?? String(error)}`, { cause: error });
  }
  try {
    const hosts = JSON.parse(text) as AddedHosts;
    const contexts = Object.values(hosts);
    const all = contexts.flatMap((nodes) => Object.values(nodes));
    const isWhole = contexts.every((nodes) => typeof nodes === 'object');
    if (isWhole && all.every(({ ssh, tunnel }) => typeof ssh === 'string' && typeof tunnel === 'boolean'))
      return hosts;
  } catch {
    // The reason of a parser helps nobody.
  }
  throw new CliError(`${path} is damaged`, {
    hints: [
      `Move it away: mv ${path} ${path}.old. The next \`muster node add\` of each host writes it again.`,
    ],
  });
}
