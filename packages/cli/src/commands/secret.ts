import { isSecretName, type SecretView, secretBytesMax, secretNameForm } from '@muster/common/secrets';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type Column, formatTable } from '../output/table.ts';
import { agoText } from '../output/times.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';

interface SecretFlags extends QueryFlags {
  readonly project?: string;
}

const usualProject = 'default';

const set: Subcommand = {
  name: 'set',
  summary: 'store a secret, or another value of it, read from standard input',
  define(sub) {
    sub
      .argument('<name>', 'what jobs call it')
      .option('--project <project>', 'whose jobs may use it', usualProject);
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nExample: muster secret set wandb < key.txt, then muster submit --secret WANDB_API_KEY=wandb -- python train.py\n' +
        'A single line is stored without its line end; anything else as it is. Tasks that run keep the value that they have.',
    );
  },
  run: setSecret,
};

const list: Subcommand = {
  name: 'list',
  summary: 'list secrets, without their values',
  define: defineList,
  run: listSecrets,
};

const remove: Subcommand = {
  name: 'remove',
  summary: 'remove a secret; jobs that name it no longer start',
  define(sub) {
    sub
      .argument('<name>', 'what jobs call it')
      .option('--project <project>', 'whose jobs could use it', usualProject);
    withQuery(sub);
  },
  run: (context: Context, name: string, flags: SecretFlags) =>
    ask(
      context,
      flags,
      (api) => api.removeSecret(flags.project ?? usualProject, name),
      (secret) => `${secret.name} of project ${secret.project} is removed.\n`,
    ),
};

const rotateKey: Subcommand = {
  name: 'rotate-key',
  summary: 'encrypt every secret with another key, and discard the earlier key',
  define(sub) {
    withQuery(sub);
    sub.addHelpText(
      'after',
      "\nThe key is in secrets.key of the coordinator's data directory. A backup from before needs the earlier key.",
    );
  },
  run: (context: Context, flags: QueryFlags) =>
    ask(
      context,
      flags,
      async (api) => ({ secrets: await api.rotateSecretKey() }),
      ({ secrets }) =>
        `The key is replaced, and ${secrets} ${secrets === 1 ? 'secret is' : 'secrets are'} encrypted with it.\n`,
    ),
};

export const command: CommandModule = {
  define(sub) {
    defineList(sub);
    sub.addHelpText('after', '\nWithout a subcommand it lists secrets, without their values.');
  },
  run: listSecrets,
  subcommands: [set, list, remove, rotateKey],
};

function defineList(sub: Parameters<Subcommand['define']>[0]): void {
  sub.option('--project <project>', 'only those of this project');
  withQuery(sub);
}

async function setSecret(context: Context, name: string, flags: SecretFlags): Promise<ExitCode> {
  if (!isSecretName(name)) throw usageError(`invalid secret name "${name}": expected ${secretNameForm}`);
  const value = await readValue(context, name);
  return ask(
    context,
    flags,
    (api) => api.setSecret(flags.project ?? usualProject, name, value),
    (secret) => `${secret.name} of project ${secret.project} is stored.\n`,
  );
}

/** A terminal would show what is typed, and an argument is visible to every user of the machine. */
async function readValue({ io, environment }: Context, name: string): Promise<Buffer> {
  const hint = `${environment.programName} secret set ${name} < FILE`;
  if (io.stdin.isTerminal) {
    throw new CliError('a terminal would show the value: give it on standard input', { hints: [hint] });
  }
  const bytes = await io.stdin.readAll(secretBytesMax + 2);
  if (bytes === null) throw usageError(`the value is larger than ${secretBytesMax} bytes`);
  const text = bytes.toString('latin1').replace(/\r?\n$/, '');
  return text.includes('\n') ? bytes : Buffer.from(text, 'latin1');
}

function listSecrets(context: Context, flags: SecretFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    async (api) => ({ secrets: await api.listSecrets(flags.project) }),
    ({ secrets }, view) => formatTable(secrets, columns(view.nowMs), view),
  );
}

function columns(nowMs: number): readonly Column<SecretView>[] {
  return [
    { header: 'PROJECT', cell: ({ project }) => project },
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'CREATED', cell: ({ createdAtMs }) => agoText(createdAtMs, nowMs), narrow: 'drop' },
    { header: 'CHANGED', cell: ({ changedAtMs }) => agoText(changedAtMs, nowMs) },
    { header: 'BY', cell: ({ changedBy }) => changedBy, narrow: 'drop' },
  ];
}
