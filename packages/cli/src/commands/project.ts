import type { CommandModule, Context, Subcommand } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { formatTable } from '../output/table.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';

interface SetFlags extends QueryFlags {
  readonly private?: boolean;
  readonly open?: boolean;
}

const list: Subcommand = {
  name: 'list',
  summary: 'list projects, and which of them are private',
  define: withQuery,
  run: listProjects,
};

const set: Subcommand = {
  name: 'set',
  summary: 'make a project private, or open again',
  define(sub) {
    sub
      .argument('<name>', 'name of the project')
      .option('--private', 'only the user of a job, operators and admins see it and change it')
      .option('--open', 'everybody sees its jobs; members of the project change them');
    withQuery(sub);
  },
  run(context: Context, name: string, flags: SetFlags): Promise<ExitCode> {
    if ((flags.private === true) === (flags.open === true))
      throw usageError('give either --private or --open');
    return ask(
      context,
      flags,
      (api) => api.setProject({ name, isPrivate: flags.private === true }),
      ({ isPrivate }) => `${name} is ${isPrivate ? 'private' : 'open'}.\n`,
    );
  },
};

export const command: CommandModule = {
  define(sub) {
    withQuery(sub);
    sub.addHelpText('after', '\nWithout a subcommand it lists projects.');
  },
  run: listProjects,
  subcommands: [list, set],
};

function listProjects(context: Context, flags: QueryFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    async (api) => ({ projects: await api.listProjects() }),
    ({ projects }, view) =>
      formatTable(
        projects,
        [
          { header: 'NAME', cell: ({ name }) => name },
          { header: 'JOBS ARE', cell: ({ isPrivate }) => (isPrivate ? 'private' : 'open') },
        ],
        view,
      ),
  );
}
