import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fetchCa, pinInToken } from '@muster/common/pinnedCa';
import { checkedAddress, givenCa, hostOf } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { localContext, readContexts, writeContexts } from '../contexts.ts';
import { CliError, fileErrorReason, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { newUserToken } from '../loginToken.ts';
import { validityText } from '../output/times.ts';
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
      '\nAn admin creates the code with `muster user code NAME`. It works once, and is exchanged for a token, which is ' +
        'saved\nin ~/.config/muster/contexts.json for you alone. Later commands use it; `muster context` changes that.',
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
  const code = await readCode(context, flags.codeFile);
  const pin = pinInToken(code);
  const named = givenCa(flags, environment);
  const ca = named ?? (pin === null ? null : await fetchCa(address, pin));
  checkedAddress(address, ca !== null);
  // Read before the code is used up: a file that cannot be read must not cost the user their code.
  const saved = readContexts(environment);
  const { connectMuster } = await import('@muster/common/wire/client');
  const api = connectMuster({ address, token: code, caCertificate: ca });
  const token = newUserToken();
  const answer = await api.login(token).finally(() => api.close());
  const { user, expiresAtMs } = answer;
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

async function readCode({ io, environment }: Context, file = '-'): Promise<string> {
  const text = file === '-' ? await readInput(io) : readCodeFile(resolve(environment.workingDir, file));
  const code = text.trim();
  if (/^muster_login_[\w-]+(\.[\w-]+)?$/.test(code)) return code;
  throw usageError('that is not a login code; an admin creates one with: muster user code NAME');
}

async function readInput(io: Context['io']): Promise<string> {
  if (io.stdin.isTerminal) {
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
    return code;
  }
  const bytes = await io.stdin.readAll(codeBytesMax);
  if (bytes === null) throw usageError('standard input is too large to be a login code');
  return bytes.toString('utf8');
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
