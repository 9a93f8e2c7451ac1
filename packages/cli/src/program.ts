/** From argv to an exit code. */
import { musterVersion } from '@muster/common/version';
import { Command, CommanderError } from 'commander';
import { commandTable } from './commandTable.ts';
import { type Context, defineCommand } from './context.ts';
import { failureFormat, failureOf, reportFailure, usageError } from './errors.ts';
import { type ExitCode, exitCodes, exitCodesText } from './exitCodes.ts';
import { OutputClosedError } from './io.ts';
import { coloursFor } from './output/colours.ts';

/** Runs one call of `muster`. Never throws: what goes wrong is on stderr and in the exit code. */
export async function runCli(argv: readonly string[], context: Context): Promise<ExitCode> {
  try {
    return await dispatch(argv, context);
  } catch (error) {
    if (error instanceof OutputClosedError) return exitCodes.ok;
    try {
      return (await reportFailure(error, context, failureFormat(argv))).exitCode;
    } catch {
      // Not even stderr takes our words any longer; the exit code is all that is left to say.
      return failureOf(error).exitCode;
    }
  }
}

async function dispatch(argv: readonly string[], context: Context): Promise<ExitCode> {
  if (argv[0] === '__complete') {
    const { complete } = await import('./completion/candidates.ts');
    return complete(commandTable, argv.slice(1), context);
  }
  const { before, commandLine } = splitAtDashes(argv);
  // `muster help jobs` is `muster jobs --help`: both need the flags, which only the command's module knows.
  let words = before.length === 0 || before[0] === 'help' ? [...before.slice(1), '--help'] : before;
  const chosen = commandTable.find(({ name }) => name === words[0]);
  if (commandLine !== null && chosen?.takesCommandLine !== true) {
    throw usageError('only `submit` takes a command after `--`');
  }
  let exitCode: ExitCode = exitCodes.ok;
  const { program, output } = newProgram(context);
  // The others are only needed for the help of the program, and to know a word for none of them.
  for (const { name, summary, group, load } of chosen === undefined ? commandTable : [chosen]) {
    const sub = program.command(name).description(summary).helpGroup(group);
    if (chosen === undefined) continue;
    const { command } = await load();
    defineCommand(sub, command, (called, module) => {
      called.action(async () => {
        // Flags may stand before the word of a subcommand too, and are then its parent's.
        const rest = [...called.processedArgs, called.optsWithGlobals(), commandLine] as never[];
        exitCode = await module.run(context, ...rest);
      });
    });
    words = (await command.withConfigFile?.(words, sub, context.environment)) ?? words;
  }
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw await fromCommander(error, words, program, context);
    await context.io.stdout.write(output.join(''));
  }
  // `muster` alone gets the help, but a script whose command went missing has to notice.
  return argv.length === 0 ? exitCodes.usage : exitCode;
}

/** Commander takes `--` itself but forgets where it stood, and an empty command after it is worth an error. */
function splitAtDashes(argv: readonly string[]): {
  readonly before: readonly string[];
  readonly commandLine: readonly string[] | null;
} {
  const dashes = argv.indexOf('--');
  if (dashes < 0) return { before: argv, commandLine: null };
  return { before: argv.slice(0, dashes), commandLine: argv.slice(dashes + 1) };
}

function newProgram({ io, environment }: Context): { readonly program: Command; readonly output: string[] } {
  const output: string[] = [];
  const { bold } = coloursFor(io.stdout, environment);
  const program = new Command('muster')
    .description('Runs GPU training jobs on machines you own or rent.')
    .usage('COMMAND [flags]')
    .version(`muster ${musterVersion}`, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    // Of similar words, `mistyped.ts` proposes none that ends work.
    .showSuggestionAfterError(false)
    // `submit` has to see where its own flags end.
    .enablePositionalOptions()
    .addHelpText(
      'after',
      `\n${bold('Exit codes:')}\n${exitCodesText()}\n\n` +
        `\`${environment.programName} COMMAND --help\` shows the flags of a command.`,
    )
    .configureHelp({ styleTitle: bold, subcommandTerm: (sub) => sub.name() })
    .configureOutput({
      writeOut: (text) => output.push(text),
      // Errors arrive as exceptions with the same text.
      writeErr: () => {},
      getOutHelpWidth: () => io.stdout.columns() ?? 100,
      getOutHasColors: () => true,
    })
    .exitOverride();
  return { program, output };
}

async function fromCommander(
  error: CommanderError,
  words: readonly string[],
  program: Command,
  { environment }: Context,
): Promise<Error> {
  const { programName } = environment;
  const { mistyped } = await import('./mistyped.ts');
  const command = commandOf(program, words);
  const path = command === program ? '' : `${pathOf(command)} `;
  return usageError(
    error.message.replace(/^error: /, ''),
    ...mistyped(error, words, command, programName),
    `See: ${programName} ${path}--help`,
  );
}

/** The command, or the one below it, that the words name. */
function commandOf(program: Command, words: readonly string[]): Command {
  const command = program.commands.find((each) => each.name() === words[0]);
  if (command === undefined) return program;
  return command.commands.find((each) => each.name() === words[1]) ?? command;
}

/** `node drain`. */
function pathOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}
