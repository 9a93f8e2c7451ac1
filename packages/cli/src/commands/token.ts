import { isNodeName } from '@muster/common/ids';
import type { CredentialView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { addressForOthers } from '../connection.ts';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type Column, formatTable } from '../output/table.ts';
import { agoText, durationText } from '../output/times.ts';
import { ask, type ForceFlag, print, type QueryFlags, requireConsent, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

interface CreateFlags extends QueryFlags {
  readonly replace?: boolean;
}

type RevokeFlags = QueryFlags & ForceFlag;

const create: Subcommand = {
  name: 'create',
  summary: 'create a single-use token with which the agent of one node joins',
  define(sub) {
    sub
      .argument('<node>', 'name of the node whose agent will use the token')
      .option(
        '--replace',
        'for a reinstalled machine: the old credential of the node ends when this token is used',
      );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nThe agent reads the token once, from --join-token-file (- is standard input) or MUSTER_JOIN_TOKEN. The token ' +
        'also identifies\nthe coordinator to trust, so protect it like a password.',
    );
  },
  run: createToken,
};

const list: Subcommand = {
  name: 'list',
  summary: 'list credentials and join tokens, without their secrets',
  define: withQuery,
  run: listTokens,
};

const revoke: Subcommand = {
  name: 'revoke',
  summary: 'revoke a credential or join token at once, and close its open connections',
  define(sub) {
    sub.argument('<name>', 'id, unique beginning of one, or a node for all of its credentials');
    sub.option('--force', 'do not ask, though jobs run on its node');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nTasks of the node keep running until their leases expire, and are then fenced like those of any silent ' +
        'node.\n`muster token create NODE --replace` lets its agent join again.',
    );
  },
  run: (context: Context, name: string, flags: RevokeFlags) =>
    ask(
      context,
      flags,
      async (api) => {
        const isAgreed = flags.force === true || (await askAboutJobs(api, name, context));
        return { ids: await api.revokeCredential(name, isAgreed) };
      },
      ({ ids }) => ids.map((id) => `${id} is revoked.\n`).join(''),
    ),
};

const rotate: Subcommand = {
  name: 'rotate',
  summary: 'replace the admin token; the current one ends at once',
  define(sub) {
    withQuery(sub);
    sub.addHelpText(
      'after',
      "\nThe coordinator's admin.token holds the new one; copy it to other machines. Open watches of the old token end.",
    );
  },
  run: (context: Context, flags: QueryFlags) =>
    ask(
      context,
      flags,
      async (api) => ({ token: await api.rotateAdminToken() }),
      ({ token }) => `${token}\n`,
      () => 'The earlier admin token is no longer valid; commands on its machine use the new one.\n',
    ),
};

export const command: CommandModule = {
  define(sub) {
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nWithout a subcommand it lists credentials and join tokens, without the secrets.',
    );
  },
  run: listTokens,
  subcommands: [create, list, revoke, rotate],
};

async function createToken(context: Context, node: string, flags: CreateFlags): Promise<ExitCode> {
  if (!isNodeName(node)) {
    throw usageError(
      `invalid node name "${node}": expected 1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends`,
    );
  }
  const { answer, endpoint } = await withSession(context, flags, async (session) => ({
    answer: await session.api.createJoinToken(node, flags.replace),
    endpoint: session.endpoint,
  }));
  const outside = addressForOthers(endpoint, flags, context.environment);
  const where =
    outside === null ? 'on this machine: the coordinator serves on loopback only' : 'on its machine';
  return print(
    context,
    flags,
    answer,
    ({ token }) => `${token}\n`,
    ({ expiresAtMs }, { nowMs }) =>
      `For one agent named ${node}, valid for ${durationText(expiresAtMs - nowMs)}, ${where}; it reads the token from its standard input:\n` +
      `  ${joinCommand(node, outside ?? endpoint.address)}\n`,
  );
}

/** Without the token: arguments are visible to every user of a machine, and shells keep what was typed. */
function joinCommand(node: string, coordinator: string): string {
  const place = `--data muster-${node} --name ${node} --coordinator ${coordinator}`;
  return `muster agent ${place} --join-token-file -`;
}

function listTokens(context: Context, flags: QueryFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    async (api) => ({ credentials: await api.listCredentials() }),
    ({ credentials }, view) => formatTable(credentials, columns(view.nowMs), view),
  );
}

function columns(nowMs: number): readonly Column<CredentialView>[] {
  return [
    { header: 'ID', cell: ({ id }) => id },
    { header: 'KIND', cell: kindText },
    { header: 'NODE', cell: ({ node }) => node ?? '', narrow: { cutTo: 8 } },
    { header: 'CREATED', cell: ({ createdAtMs }) => agoText(createdAtMs, nowMs), narrow: 'drop' },
    { header: 'LAST USED', cell: (credential) => lastUseText(credential, nowMs) },
    { header: 'EXPIRES', cell: (credential) => expiryText(credential, nowMs) },
  ];
}

function kindText({ kind, used, replaces }: CredentialView): string {
  if (kind !== 'join') return kind;
  return used ? 'join, used' : replaces ? 'join, replaces' : 'join';
}

function lastUseText({ openCalls, lastUsedAtMs }: CredentialView, nowMs: number): string {
  if (openCalls > 0) return 'now';
  return lastUsedAtMs === null ? 'never' : agoText(lastUsedAtMs, nowMs);
}

function expiryText({ expiresAtMs }: CredentialView, nowMs: number): string {
  if (expiresAtMs === null) return 'never';
  return expiresAtMs <= nowMs ? 'expired' : `in ${durationText(expiresAtMs - nowMs)}`;
}

const namedMax = 3;

/**
 * What runs on a node whose agent may not come back ends with its lease.
 * @returns whether a person has agreed to that; false: nothing runs there, and the coordinator refuses if something does by then
 */
async function askAboutJobs(api: MusterApi, name: string, context: Context): Promise<boolean> {
  const agents = (await api.listCredentials()).filter(
    ({ id, kind, node }) => kind === 'agent' && (node === name || id.startsWith(name)),
  );
  const nodes = new Set(agents.map(({ node }) => node));
  if (nodes.size === 0) return false;
  const { jobs } = await api.listJobs({ states: ['starting', 'running', 'stopping'], limit: 1_000 });
  const ids = jobs
    .filter(({ attempts }) =>
      attempts.at(-1)?.tasks.some(({ node, state }) => nodes.has(node) && state !== 'ended'),
    )
    .map(({ id }) => id);
  if (ids.length === 0) return false;
  const more = ids.length > namedMax ? ` and ${ids.length - namedMax} more` : '';
  await requireConsent(
    context,
    `${[...nodes].join(', ')} runs ${ids.slice(0, namedMax).join(', ')}${more}, which end there with their leases`,
    `${context.environment.programName} token revoke ${name} --force`,
  );
  return true;
}
