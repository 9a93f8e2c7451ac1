/**
 * Which coordinator to connect to, and with which credentials: flags, then environment, then the login in use, then the note of
 * the last `muster up`, then the service on this machine.
 */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isLoopbackHost, parseAddress } from '@muster/common/address';
import type { Command } from 'commander';
import { chosenContext, type SavedContext } from './contexts.ts';
import type { ProgramEnvironment } from './environment.ts';
import { CliError, fileErrorReason, usageError } from './errors.ts';

/** The flags of `withConnection`. */
export interface ConnectionFlags {
  readonly addr?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly data?: string;
  readonly context?: string;
}

export interface ApiEndpoint {
  /** `host:port`. */
  readonly address: string;
  readonly token: string;
  /** PEM of the CA that the coordinator has to prove itself by; null: no TLS, on loopback only. */
  readonly caCertificate: string | null;
}

/** What a serving coordinator writes to `connection.json` in its data directory. */
interface KnownCoordinator {
  readonly address: string;
  readonly tokenPath: string;
  /** null: it has no TLS. */
  readonly caPath: string | null;
  /** `host:port` by which other machines reach it, best first. */
  readonly advertised: readonly string[];
  /** Of its HTTP API; null: it has none. */
  readonly apiUrl: string | null;
}

/** The file that `muster up` locks in its data directory; `muster coordinator` makes none. */
export const upLockName = 'up.lock';

/** Where `muster install coordinator` has it keep its data. */
const installedDataDir = '/var/lib/muster';

/** Far more than any of these files holds; bounds what a wrong path can cost. */
const smallFileBytesMax = 16 * 1024;

export function withConnection(command: Command): Command {
  return withConnectionElsewhere(command).option(
    '--data <dir>',
    'data directory of a coordinator on this machine (MUSTER_DATA)',
  );
}

/** The same where `--data` means something else: MUSTER_DATA still names the directory. */
export function withConnectionElsewhere(command: Command): Command {
  return command
    .optionsGroup('Which coordinator:')
    .option('--addr <host:port>', 'its address (MUSTER_ADDR); default: the last `muster up` on this machine')
    .option('--token-file <file>', 'file with the token (MUSTER_TOKEN holds the token itself)')
    .option('--ca <file>', "certificate of the coordinator's CA (MUSTER_CA), if it runs on another machine")
    .option('--context <name>', 'a login saved by `muster login` (MUSTER_CONTEXT); `local`: none');
}

/** @throws {CliError} that names what is missing or unreadable, and the remedy */
export function resolveEndpoint(flags: ConnectionFlags, environment: ProgramEnvironment): ApiEndpoint {
  const endpoint = findEndpoint(flags, environment);
  if (endpoint === null) throw noCoordinatorKnown(environment);
  return endpoint;
}

/**
 * @returns null when nothing names a coordinator
 * @throws {CliError} as `resolveEndpoint` does
 */
export function findEndpoint(flags: ConnectionFlags, environment: ProgramEnvironment): ApiEndpoint | null {
  const address = flags.addr ?? environment.address;
  const givenToken = tokenFromFlags(flags, environment);
  const saved = givenToken !== null && address !== null ? null : savedContext(flags, environment);
  if (saved !== null) {
    const ca = flags.ca === undefined ? saved.ca : givenCa(flags, environment);
    return checkedEndpoint(saved.address, givenToken ?? saved.token, ca);
  }
  if (address !== null && givenToken !== null) {
    return checkedEndpoint(
      address,
      givenToken,
      caFor(knownAt(address, flags, environment), flags, environment),
    );
  }
  const known = knownCoordinator(flags, environment);
  if (address === null) {
    if (known === null) return null;
    const token = givenToken ?? readToken(known.tokenPath);
    return checkedEndpoint(known.address, token, caFor(known, flags, environment));
  }
  // The token of one coordinator is a secret to every other.
  if (known === null || !servesAt(known, address)) {
    throw new CliError(`no token for the coordinator at ${address}`, {
      code: 'unauthenticated',
      hints: ['Set MUSTER_TOKEN, or name a file with --token-file.'],
    });
  }
  return checkedEndpoint(address, readToken(known.tokenPath), caFor(known, flags, environment));
}

function savedContext(flags: ConnectionFlags, environment: ProgramEnvironment): SavedContext | null {
  const address = flags.addr ?? environment.address;
  const isFree = address === null && flags.data === undefined && environment.dataDir === null;
  return chosenContext(environment, { named: flags.context ?? environment.contextName, address, isFree });
}

/**
 * How to get the coordinator of this endpoint back, which does not answer. `muster up` would be wrong for one that
 * `muster coordinator` has started, which may serve other machines, and for one on another machine.
 */
export function remediesForSilence(
  { address }: ApiEndpoint,
  flags: ConnectionFlags,
  environment: ProgramEnvironment,
): readonly string[] {
  const { programName, workingDir } = environment;
  const named = flags.data ?? environment.dataDir;
  const known = knownAt(address, flags, environment);
  if (known === null && !isLoopbackHost(hostOf(address) ?? ''))
    return ['Check that the coordinator runs there, and that this machine reaches it.'];
  const dataDir = known === null || named === null ? null : resolve(workingDir, named);
  if (dataDir === null || existsSync(join(dataDir, upLockName)))
    return [`Start one on this machine with: ${programName} up`];
  return [
    `Start it again as before: its service, or ${programName} coordinator --data ${dataDir} with its other flags`,
  ];
}

/**
 * Where other machines reach the coordinator of this endpoint.
 * @returns null: nowhere, it serves on loopback
 */
export function addressForOthers(
  { address }: ApiEndpoint,
  flags: ConnectionFlags,
  environment: ProgramEnvironment,
): string | null {
  const [advertised] = knownAt(address, flags, environment)?.advertised ?? [];
  if (advertised !== undefined) return advertised;
  return isLoopbackHost(hostOf(address) ?? '') ? null : address;
}

/** @returns PEM of the CA that flag or variable name; null: neither does */
export function givenCa({ ca }: Pick<ConnectionFlags, 'ca'>, environment: ProgramEnvironment): string | null {
  const named = ca ?? environment.caPath;
  return named === null ? null : readCa(resolve(environment.workingDir, named));
}

/** What a coordinator on this machine has noted of itself counts more than MUSTER_CA, which may be meant for another. */
function caFor(
  known: KnownCoordinator | null,
  flags: ConnectionFlags,
  environment: ProgramEnvironment,
): string | null {
  if (flags.ca !== undefined || known === null) return givenCa(flags, environment);
  return known.caPath === null ? null : readCa(known.caPath);
}

function readCa(path: string): string {
  const text = readSmallFile(path, 'the CA');
  if (text === null)
    throw new CliError(`cannot read the CA: ${path} does not exist`, { code: 'permission_denied' });
  if (/^-----BEGIN CERTIFICATE-----$/m.test(text)) return text;
  throw usageError(`${path} does not hold a certificate in PEM`, howToGetCa);
}

function tokenFromFlags(flags: ConnectionFlags, environment: ProgramEnvironment): string | null {
  if (flags.tokenFile !== undefined) return readToken(resolve(environment.workingDir, flags.tokenFile));
  return environment.token === null ? null : checkedToken(environment.token, 'MUSTER_TOKEN');
}

function knownCoordinator(flags: ConnectionFlags, environment: ProgramEnvironment): KnownCoordinator | null {
  const named = flags.data ?? environment.dataDir;
  if (named !== null) {
    const dataDir = resolve(environment.workingDir, named);
    const known = readConnection(dataDir);
    if (known !== null) return known;
    throw new CliError(`no coordinator has run with the data directory ${dataDir}`, {
      code: 'unavailable',
      hints: [`Start one with: ${environment.programName} up --data ${dataDir}`],
    });
  }
  return readConnection(lastDataDir(environment)) ?? installedCoordinator();
}

/** The service on this machine, for its admin; to others it is not known. */
function installedCoordinator(): KnownCoordinator | null {
  try {
    accessSync(join(installedDataDir, 'connection.json'), constants.R_OK);
  } catch {
    return null;
  }
  return readConnection(installedDataDir);
}

/**
 * The coordinator of this machine, if it is the one at this address. A user who names address and token may have none here,
 * or a damaged one.
 */
function knownAt(
  address: string,
  flags: ConnectionFlags,
  environment: ProgramEnvironment,
): KnownCoordinator | null {
  try {
    const known = knownCoordinator(flags, environment);
    return known !== null && servesAt(known, address) ? known : null;
  } catch (error) {
    if (error instanceof CliError) return null;
    throw error;
  }
}

function servesAt(known: KnownCoordinator, address: string): boolean {
  return known.address === address || known.advertised.includes(address);
}

function noCoordinatorKnown({ programName }: ProgramEnvironment): CliError {
  return new CliError('no coordinator is known on this machine', {
    code: 'unavailable',
    hints: [
      `Start one here with: ${programName} up`,
      `Or log in to one: ${programName} login HOST`,
      'Or name one: --addr HOST:PORT (MUSTER_ADDR) and --token-file FILE (MUSTER_TOKEN)',
    ],
  });
}

/** Where the last `muster up` of this user keeps its data. */
export function lastDataDir(environment: ProgramEnvironment): string {
  const text = readSmallFile(environment.lastUpPath, 'the note of the last `muster up`');
  if (text === null) return environment.defaultDataDir;
  const dataDir = parseObject(text)?.['dataDir'];
  if (typeof dataDir === 'string') return dataDir;
  throw new CliError(`${environment.lastUpPath} is damaged`, {
    hints: [`Remove it, then name the data directory once with: ${environment.programName} up --data DIR`],
  });
}

/** @returns null when no coordinator has served from this directory */
export function readConnection(dataDir: string): KnownCoordinator | null {
  const path = join(dataDir, 'connection.json');
  const text = readSmallFile(path, 'the address of the coordinator');
  if (text === null) return null;
  const { addr, tokenFile, ca, advertised, api } = parseObject(text) ?? {};
  if (typeof addr === 'string' && typeof tokenFile === 'string') {
    return {
      address: addr,
      tokenPath: resolve(dataDir, tokenFile),
      caPath: typeof ca === 'string' ? resolve(dataDir, ca) : null,
      advertised: Array.isArray(advertised) ? advertised.filter((each) => typeof each === 'string') : [],
      apiUrl: typeof api === 'string' ? api : null,
    };
  }
  throw new CliError(`${path} is damaged`, {
    hints: ['The coordinator writes it again when it starts: restart it.'],
  });
}

/** @throws {CliError} when there is no such file, or none that holds a token */
export function readToken(path: string): string {
  const text = readSmallFile(path, 'the token');
  if (text !== null) return checkedToken(text.trim(), path);
  throw new CliError(`cannot read the token: ${path} does not exist`, { code: 'unauthenticated' });
}

/** @returns null when there is no such file */
function readSmallFile(path: string, what: string): string | null {
  try {
    const bytes = readFileSync(path);
    if (bytes.length <= smallFileBytesMax) return bytes.toString('utf8');
    throw new CliError(`cannot read ${what} from ${path}: the file is too large to be that`);
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    const reason = fileErrorReason(error) ?? String(error);
    throw new CliError(`cannot read ${what} from ${path}: ${reason}`, { cause: error });
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function checkedToken(token: string, source: string): string {
  // Anything else cannot be a token, and gRPC would refuse it in words of its own.
  if (/^[\x21-\x7e]{1,4096}$/.test(token)) return token;
  throw usageError(token === '' ? `${source} is empty` : `${source} does not hold a token`);
}

function checkedEndpoint(address: string, token: string, caCertificate: string | null): ApiEndpoint {
  return { address: checkedAddress(address, caCertificate !== null), token, caCertificate };
}

const howToGetCa =
  "The certificate is tls/ca.pem in the coordinator's data directory: copy it here, then --ca FILE or MUSTER_CA=FILE.";

/** @throws {CliError} unless a secret may be sent to this `host:port` */
export function checkedAddress(address: string, encrypted: boolean): string {
  const host = hostOf(address);
  if (host === null)
    throw usageError(`invalid address "${address}"; expected HOST:PORT, such as 127.0.0.1:7070`);
  if (encrypted || isLoopbackHost(host)) return address;
  throw new CliError(
    `will not send a token to ${address}: there is no CA to verify that it is your coordinator`,
    { code: 'permission_denied', hints: [howToGetCa] },
  );
}

/** @returns null for text that is not `host:port` */
export function hostOf(address: string, { portMin = 1 } = {}): string | null {
  const parsed = parseAddress(address);
  return parsed !== null && parsed.port >= portMin ? parsed.host : null;
}

export { isLoopbackHost as isLoopback };
