/** Coordinators that a user of this machine has logged in to: `contexts.json` in their configuration directory, mode 0600. */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { writeFileDurably } from '@muster/common/files';
import type { ProgramEnvironment } from './environment.ts';
import { CliError, fileErrorReason, usageError } from './errors.ts';

export interface SavedContext {
  /** `host:port`. */
  readonly address: string;
  readonly token: string;
  /** PEM of the CA that the coordinator has to prove itself by; null: no TLS, on loopback only. */
  readonly ca: string | null;
  /** Who logged in. */
  readonly user: string;
}

export interface SavedContexts {
  /** The one that commands use; null: the coordinator of this machine. */
  readonly current: string | null;
  readonly contexts: Readonly<Record<string, SavedContext>>;
}

/** Names no saved context: commands use the coordinator of this machine, as if nobody had logged in. */
export const localContext = 'local';

type Place = Pick<ProgramEnvironment, 'contextsPath' | 'programName'>;

/** @throws {CliError} for a file that others may read, or that is damaged */
export function readContexts({ contextsPath, programName }: Place): SavedContexts {
  const text = readPrivately(contextsPath);
  if (text === null) return { current: null, contexts: {} };
  try {
    const { current, contexts } = JSON.parse(text) as Partial<SavedContexts>;
    const entries = Object.entries(contexts ?? {});
    const isWhole = entries.every(
      ([, { address, token, user }]) =>
        typeof address === 'string' && typeof token === 'string' && typeof user === 'string',
    );
    if (isWhole) return { current: current ?? null, contexts: Object.fromEntries(entries) };
  } catch {
    // The reason of a parser helps nobody.
  }
  throw new CliError(`${contextsPath} is damaged`, {
    hints: [`Remove it, then log in again with: ${programName} login HOST`],
  });
}

export function writeContexts({ contextsPath }: Place, contexts: SavedContexts): void {
  try {
    mkdirSync(dirname(contextsPath), { recursive: true, mode: 0o700 });
    writeFileDurably(contextsPath, `${JSON.stringify(contexts, null, 2)}\n`, 0o600);
  } catch (error) {
    throw new CliError(`cannot write ${contextsPath}: ${fileErrorReason(error) ?? String(error)}`, {
      cause: error,
    });
  }
}

/** @returns the name of the context that has the token; null: none has it */
export function contextWithToken({ contexts }: SavedContexts, token: string): string | null {
  return Object.entries(contexts).find(([, saved]) => saved.token === token)?.[0] ?? null;
}

/** @throws {CliError} where the file cannot be written */
export function replaceToken(place: Place, saved: SavedContexts, name: string, token: string): void {
  const login = saved.contexts[name];
  if (login === undefined) return;
  writeContexts(place, { ...saved, contexts: { ...saved.contexts, [name]: { ...login, token } } });
}

/** @throws {CliError} when there is none of that name */
export function contextNamed(place: Place, { contexts }: SavedContexts, name: string): SavedContext {
  const saved = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (saved !== undefined) return saved;
  const known = Object.keys(contexts).join(', ');
  throw usageError(
    `there is no context "${name}"`,
    known === '' ? `Log in with: ${place.programName} login HOST` : `There are: ${known}`,
  );
}

/**
 * The saved context that a call is to use.
 * @param named by a flag or a variable; null: nothing names one
 * @param address by a flag or a variable; null: nothing names one
 * @param isFree no flag and no variable says which coordinator to use
 * @returns null: none
 * @throws {CliError} as `readContexts` and `contextNamed` do
 */
export function chosenContext(
  place: Place,
  { named, address, isFree }: { named: string | null; address: string | null; isFree: boolean },
): SavedContext | null {
  if (named === localContext) return null;
  if (named !== null) return contextNamed(place, readContexts(place), named);
  if (address === null && !isFree) return null;
  const saved = readContexts(place);
  if (address !== null) return Object.values(saved.contexts).find((each) => each.address === address) ?? null;
  return saved.current === null ? null : contextNamed(place, saved, saved.current);
}

function readPrivately(path: string): string | null {
  try {
    const text = readFileSync(path, 'utf8');
    // As ssh does: what others could read is no secret, and its owner should learn of it.
    if ((statSync(path).mode & 0o077) === 0) return text;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new CliError(`cannot read ${path}: ${fileErrorReason(error) ?? String(error)}`, { cause: error });
  }
  throw new CliError(`${path} has tokens, and other users of this machine may read it`, {
    code: 'permission_denied',
    hints: [`chmod 600 ${path}, and if somebody may have read it: muster token rotate`],
  });
}
