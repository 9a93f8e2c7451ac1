import { type Role, roles, type User } from '@muster/common/people';
import type { MusterApi } from '@muster/common/wire/client';
import { addressForOthers } from '../connection.ts';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { collect } from '../flags.ts';
import { formatTable } from '../output/table.ts';
import { agoText, validityText } from '../output/times.ts';
import { ask, print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

interface UserFlags extends QueryFlags {
  readonly role?: Role;
  readonly project?: readonly string[];
  readonly login: boolean;
}

const roleFlag = (typed: string): Role => {
  const role = roles.find((each) => each === typed);
  if (role !== undefined) return role;
  throw usageError(`--role takes one of ${roles.join(', ')}; got "${typed}"`);
};

const add: Subcommand = {
  name: 'add',
  summary: 'add a user, and print the code with which they log in',
  define(sub) {
    sub
      .argument('<name>', 'name of the user, as of a Unix account')
      .option('--role <role>', `${roles.join(', ')}; default: user`, roleFlag)
      .option(
        '--project <project>',
        'a project of theirs; several times for several; default: default',
        collect,
      )
      .option(
        '--no-login',
        'without a login code: for a program, which gets a token by `muster token issue`',
      );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nviewer: reads jobs and nodes. user: submits jobs to their projects, and changes them. operator: changes every job, and ' +
        'drains nodes.\nadmin: everything, users and credentials included.',
    );
  },
  run: (context: Context, name: string, flags: UserFlags) =>
    withCode(context, flags, name, flags.login, (api) =>
      api.addUser({ name, role: flags.role ?? 'user', projects: flags.project ?? [] }),
    ),
};

const set: Subcommand = {
  name: 'set',
  summary: 'give a user another role or other projects',
  define(sub) {
    sub
      .argument('<name>', 'name of the user')
      .option('--role <role>', roles.join(', '), roleFlag)
      .option('--project <project>', 'in place of their projects; several times for several', collect);
    withQuery(sub);
  },
  run: (context: Context, name: string, flags: UserFlags) =>
    ask(
      context,
      flags,
      (api) =>
        api.changeUser(name, {
          ...(flags.role === undefined ? {} : { role: flags.role }),
          ...(flags.project === undefined ? {} : { projects: flags.project }),
        }),
      (user) => `${facts(user)}.\n`,
    ),
};

const code: Subcommand = {
  name: 'code',
  summary:
    'print another code with which a user logs in, on another machine or after their token has expired',
  define(sub) {
    sub.argument('<name>', 'name of the user');
    withQuery(sub);
  },
  run: (context: Context, name: string, flags: UserFlags) =>
    withCode(context, flags, name, true, () => Promise.resolve(null)),
};

const list: Subcommand = {
  name: 'list',
  summary: 'list users with their roles and projects',
  define: withQuery,
  run: listUsers,
};

const remove: Subcommand = {
  name: 'remove',
  summary: 'remove a user; all their tokens end at once, their jobs stay',
  define(sub) {
    sub.argument('<name>', 'name of the user');
    withQuery(sub);
  },
  run: (context: Context, name: string, flags: QueryFlags) =>
    ask(
      context,
      flags,
      async (api) => {
        await api.removeUser(name);
        return { user: name };
      },
      () => `${name} is removed.\n`,
      (_, { programName }) => `Their jobs stay: ${programName} jobs --user ${name}\n`,
    ),
};

export const command: CommandModule = {
  define(sub) {
    withQuery(sub);
    sub.addHelpText('after', '\nWithout a subcommand it lists users.');
  },
  run: listUsers,
  subcommands: [add, list, set, code, remove],
};

/** Does something about a user, then makes a login code for them. The code alone is on stdout. */
async function withCode(
  context: Context,
  flags: QueryFlags,
  name: string,
  isWanted: boolean,
  work: (api: MusterApi) => Promise<User | null>,
): Promise<ExitCode> {
  const { user, login, endpoint } = await withSession(context, flags, async (session) => ({
    user: await work(session.api),
    login: isWanted ? await session.api.createLoginCode(name) : null,
    endpoint: session.endpoint,
  }));
  const address = addressForOthers(endpoint, flags, context.environment) ?? endpoint.address;
  const { code: text = null, expiresAtMs = null } = login ?? {};
  return print(
    context,
    flags,
    { user, code: text, expiresAtMs },
    () => (text === null ? '' : `${text}\n`),
    (_, { nowMs, programName }) =>
      (user === null ? '' : `${facts(user)}.\n`) +
      (expiresAtMs === null
        ? `A token for a program: ${programName} token issue LABEL --user ${name}\n`
        : `The code works once, for ${validityText(expiresAtMs, nowMs)}; ${name} enters it at the prompt of:\n` +
          `  ${programName} login ${address}\n`),
  );
}

function facts({ name, role, projects }: User): string {
  return `${name}: ${role}; ${projects.join(', ')}`;
}

function listUsers(context: Context, flags: QueryFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    async (api) => ({ users: await api.listUsers() }),
    ({ users }, view) =>
      formatTable(
        users,
        [
          { header: 'NAME', cell: ({ name }) => name },
          { header: 'ROLE', cell: ({ role }) => role },
          { header: 'PROJECTS', cell: ({ projects }) => projects.join(', ') },
          { header: 'ADDED', cell: ({ createdAtMs }) => agoText(createdAtMs, view.nowMs), narrow: 'drop' },
        ],
        view,
      ),
  );
}
