import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { MusterError } from '@muster/common/errors';
import type { User } from '@muster/common/people';
import { fetchCa, pinInToken } from '@muster/common/pinnedCa';
import type { MusterApi } from '@muster/common/wire/client';
import type { LoginMethod } from '@muster/common/wire/peopleClient';
import { checkedAddress, givenCa, hostOf, isLoopback } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { localContext, readContexts, type SavedContexts, writeContexts } from '../contexts.ts';
import { CliError, fileErrorReason, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { newUserToken } from '../loginToken.ts';
import { durationText, validityText } from '../output/times.ts';
import { print } from '../query.ts';

interface LoginFlags extends OutputFlags {
  readonly codeFile?: string;
  readonly ca?: string;
  readonly as?: string;
}

const usualPort = 7070;
const codeBytesMax = 4_096;
/** Enter, Ctrl-C and Ctrl-D. */
const endsInput = '\r\n\u0003\u0004';

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('<host>', 'HOST or HOST:PORT of the coordinator')
      .option('--code-file <file>', 'file with the login code; default and -: standard input')
      .option('--as <name>', 'name of the context; default: the host')
      .option(
        '--ca <file>',
        "certificate of the coordinator's CA (MUSTER_CA); default: the code identifies it",
      );
    withOutput(sub);
    sub.addHelpText(
      'after',
      '\nAn admin creates the code with `muster user code NAME`; it works once. Where the coordinator knows an issuer of OpenID ' +
        'Connect\n(--oidc-issuer) and no code is given, you log in there with a browser; name its CA with --ca the first time.\nThe ' +
        'token that you get is saved in ~/.config/muster/contexts.json for you alone. Later commands use it; `muster context`\nchanges that.',
    );
  },
  run: login,
};

async function login(context: Context, host: string, flags: LoginFlags): Promise<ExitCode> {
  const { environment, clock } = context;
  const address = hostOf(host) === null ? `${host}:${usualPort}` : host;
  const hostName = hostOf(address);
  if (hostName === null) throw usageError(`invalid address "${host}"; expected HOST or HOST:PORT`);
  const name = flags.as ?? hostName;
  if (name === localContext)
    throw usageError(
      `"${localContext}" means the coordinator of this machine; choose another name with --as`,
    );
  // Read before a code is used up: a file that cannot be read must not cost the user their code.
  const saved = readContexts(environment);
  const given = await givenCode(context, flags.codeFile);
  const cas = { named: givenCa(flags, environment), saved: caOfSaved(saved, address) };
  const method = given === null ? await loginMethod(address, cas) : null;
  const token = newUserToken();
  const { user, expiresAtMs, ca } =
    method === null
      ? await loginWithCode(address, cas, given ?? (await promptForCode(context)), token)
      : await loginAtIssuer(context, address, cas.named ?? cas.saved, method, token);
  const contexts = { ...saved.contexts, [name]: { address, token, ca, user: user.name } };
  writeContexts(environment, { current: name, contexts });
  return print(
    context,
    flags,
    { context: name, address, user: user.name, role: user.role, projects: user.projects, expiresAtMs },
    ({ projects, role }) =>
      `Logged in to ${address} as ${user.name} (${role}; ${projects.join(', ')}), for ${validityText(expiresAtMs, clock.wallMs())}.\n`,
    (_, { programName }) =>
      `Commands use it from now on. The coordinator of this machine: ${programName} context use ${localContext}\n`,
  );
}

/** PEM of what is known of the coordinator before a code identifies it; null: nothing. */
interface KnownCas {
  /** By a flag or a variable. */
  readonly named: string | null;
  /** By an earlier login. The coordinator may have another one since. */
  readonly saved: string | null;
}

interface LoggedIn {
  readonly user: User;
  /** Wall clock. */
  readonly expiresAtMs: number;
  readonly ca: string | null;
}

async function loginWithCode(
  address: string,
  { named, saved }: KnownCas,
  code: string,
  token: string,
): Promise<LoggedIn> {
  const pin = pinInToken(code);
  const ca = named ?? (pin === null ? saved : await fetchCa(address, pin));
  const entered = withApi(address, code, ca, (api) => api.login(token)).catch((error: unknown) => {
    if (!(error instanceof MusterError) || error.code !== 'unauthenticated') throw error;
    throw new CliError('the login code is unknown to this coordinator, was used, or has expired', {
      code: error.code,
      cause: error,
      hints: ['A code works once, for 24 hours. An admin creates another one: muster user code NAME'],
    });
  });
  return { ...(await entered), ca };
}

async function loginAtIssuer(
  { io }: Context,
  address: string,
  ca: string | null,
  method: LoginMethod,
  token: string,
): Promise<LoggedIn> {
  const { idTokenByDevice } = await import('../deviceLogin.ts');
  const idToken = await idTokenByDevice(method, ({ url, code, validForMs }) =>
    io.stderr.write(
      `Open this page in any browser, on any machine, and confirm the code ${code}:\n  ${url}\n` +
        `Waiting for that, for ${durationText(validForMs)} at most …\n`,
    ),
  );
  return {
    ...(await withApi(address, nothingToShow, ca, (api) => api.loginWithIdToken(idToken, token))),
    ca,
  };
}

/** For calls that need no token. */
const nothingToShow = 'none';

/** @returns null: by codes, or it cannot be asked, because only the code identifies its CA */
async function loginMethod(address: string, { named, saved }: KnownCas): Promise<LoginMethod | null> {
  const ca = named ?? saved;
  if (ca === null && !isLoopback(hostOf(address) ?? '')) return null;
  try {
    return await withApi(address, nothingToShow, ca, (api) => api.getLoginMethod());
  } catch (error) {
    // An older coordinator does not know the question, and one with another CA than before is identified by a code.
    const isAway = error instanceof MusterError && error.code === 'unavailable' && saved === null;
    if (isAway || !(error instanceof MusterError)) throw error;
    return null;
  }
}

async function withApi<T>(
  address: string,
  token: string,
  ca: string | null,
  work: (api: MusterApi) => Promise<T>,
): Promise<T> {
  checkedAddress(address, ca !== null);
  const { connectMuster } = await import('@muster/common/wire/client');
  const api = connectMuster({ address, token, caCertificate: ca });
  return work(api).finally(() => api.close());
}

/** The CA by which an earlier login knows the coordinator. */
function caOfSaved({ contexts }: SavedContexts, address: string): string | null {
  return Object.values(contexts).find((saved) => saved.address === address)?.ca ?? null;
}

/** @returns null: none was given, and there may be a terminal to ask at */
async function givenCode({ io, environment }: Context, file: string | undefined): Promise<string | null> {
  if (file !== undefined && file !== '-')
    return checkedCode(readCodeFile(resolve(environment.workingDir, file)));
  if (io.stdin.isTerminal) return null;
  const bytes = await io.stdin.readAll(codeBytesMax);
  if (bytes === null) throw usageError('standard input is too large to be a login code');
  const text = bytes.toString('utf8');
  return text.trim() === '' && file === undefined ? null : checkedCode(text);
}

async function promptForCode({ io }: Context): Promise<string> {
  if (!io.stdin.isTerminal) return checkedCode('');
  await io.stderr.write('Login code: ');
  const code = await new Promise<string>((done) => {
    let typed = '';
    const giveBack = io.stdin.onKeys((keys) => {
      const end = Array.from(keys).findIndex((key) => endsInput.includes(key));
      typed += end === -1 ? keys : keys.slice(0, end);
      if (end === -1) return;
      giveBack();
      done(typed);
    });
  });
  await io.stderr.write('\n');
  return checkedCode(code);
}

function checkedCode(text: string): string {
  const code = text.trim();
  if (/^muster_login_[\w-]+(\.[\w-]+)?$/.test(code)) return code;
  throw usageError('that is not a login code; an admin creates one with: muster user code NAME');
}

function readCodeFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CliError(
      `cannot read the login code from ${path}: ${fileErrorReason(error) ?? String(error)}`,
      {
        cause: error,
      },
    );
  }
}
