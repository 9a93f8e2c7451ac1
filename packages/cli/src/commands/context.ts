import { messageOf } from '@muster/common/errors';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { contextNamed, localContext, readContexts, writeContexts } from '../contexts.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { idOfToken } from '../loginToken.ts';
import { formatTable } from '../output/table.ts';
import { print } from '../query.ts';

const list: Subcommand = {
  name: 'list',
  summary: 'list the coordinators that you have logged in to',
  define: withOutput,
  run: listContexts,
};

const use: Subcommand = {
  name: 'use',
  summary: 'choose the login that commands use; `local`: the coordinator of this machine',
  define(sub) {
    sub.argument('<name>', 'name of the context');
    withOutput(sub);
  },
  async run(context: Context, name: string, flags: OutputFlags): Promise<ExitCode> {
    const { environment } = context;
    const saved = readContexts(environment);
    const current = name === localContext ? null : name;
    if (current !== null) contextNamed(environment, saved, current);
    writeContexts(environment, { ...saved, current });
    return print(context, flags, { current: name }, () =>
      current === null ? 'Commands use the coordinator of this machine.\n' : `Commands use ${name}.\n`,
    );
  },
};

const remove: Subcommand = {
  name: 'remove',
  summary: 'log out: end the token of a login, and forget it',
  define(sub) {
    sub.argument('<name>', 'name of the context');
    withOutput(sub);
  },
  run: removeContext,
};

export const command: CommandModule = {
  define(sub) {
    withOutput(sub);
    sub.addHelpText('after', '\nWithout a subcommand it lists them. `muster login HOST` adds one.');
  },
  run: listContexts,
  subcommands: [list, use, remove],
};

function listContexts(context: Context, flags: OutputFlags): Promise<ExitCode> {
  const { current, contexts } = readContexts(context.environment);
  const rows = Object.entries(contexts).map(([name, { address, user }]) => ({
    name,
    address,
    user,
    isCurrent: name === current,
  }));
  return print(context, flags, { contexts: rows }, (_, view) =>
    formatTable(
      rows,
      [
        { header: 'NAME', cell: ({ name, isCurrent }) => (isCurrent ? `${name} (in use)` : name) },
        { header: 'ADDRESS', cell: ({ address }) => address },
        { header: 'USER', cell: ({ user }) => user },
      ],
      view,
    ),
  );
}

/** A token that the coordinator does not end, because it is away or has ended it, is forgotten anyway. */
async function removeContext(context: Context, name: string, flags: OutputFlags): Promise<ExitCode> {
  const { environment } = context;
  const saved = readContexts(environment);
  const { address, token, ca, user } = contextNamed(environment, saved, name);
  const { connectMuster } = await import('@muster/common/wire/client');
  const api = connectMuster({ address, token, caCertificate: ca });
  const problem = await api
    .revokeCredential(idOfToken(user, token))
    .then(() => null, messageOf)
    .finally(() => api.close());
  const { [name]: _, ...contexts } = saved.contexts;
  writeContexts(environment, { current: saved.current === name ? null : saved.current, contexts });
  return print(
    context,
    flags,
    { context: name, revoked: problem === null },
    () => `${name} is removed${problem === null ? ', and its token has ended' : ''}.\n`,
    () => (problem === null ? '' : `Its token could not be revoked: ${problem}\n`),
  );
}
