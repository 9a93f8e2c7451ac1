import type { Clock } from '@muster/common/clock';
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import type { ExitCode } from './exitCodes.ts';
import type { Io } from './io.ts';

/** The world as a command sees it. Tests hand in another one. */
export interface Context {
  readonly io: Io;
  readonly environment: ProgramEnvironment;
  readonly clock: Clock;
  /** How long the completion of a word waits for the coordinator, in milliseconds; then it offers nothing from there. */
  readonly completionWaitMs: number;
  /** A fresh id for one intent; the coordinator takes a repeated one for the same request. */
  newRequestId(): string;
}

/**
 * One command of `muster`. Its module is loaded only when the command runs, prints its help or is completed.
 *
 * `run` gets the positional arguments as commander passes them, then the flags. It returns the exit code, or throws a
 * CliError or MusterError for the user to read.
 */
export interface CommandModule {
  /** Adds arguments, flags and help texts. */
  define(command: Command): void;
  run(context: Context, ...argumentsAndFlags: never[]): Promise<ExitCode>;
  /** The command line to parse instead of the one that was typed: daemons add the settings of their file. */
  withConfigFile?(
    words: readonly string[],
    command: Command,
    environment: ProgramEnvironment,
  ): Promise<readonly string[]>;
  /** Words that make another command of it, such as `clear` in `muster node clear`. They win over its arguments. */
  readonly subcommands?: readonly Subcommand[];
}

export interface Subcommand extends CommandModule {
  readonly name: string;
  readonly summary: string;
}

/** A command as the help lists it, before its module is loaded. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** Heading in the help. */
  readonly group: 'Start:' | 'Jobs:' | 'Cluster:' | 'This program:';
  /** Only `submit` runs a command line of the user's, given after `--`. */
  readonly takesCommandLine?: true;
  load(): Promise<{ readonly command: CommandModule }>;
}

/** Defines the command and those below it. `onDefined` sees each once it has its arguments and flags. */
export function defineCommand(
  command: Command,
  module: CommandModule,
  onDefined: (command: Command, module: CommandModule) => void = () => {},
): void {
  module.define(command);
  onDefined(command, module);
  for (const below of module.subcommands ?? []) {
    defineCommand(command.command(below.name).description(below.summary), below, onDefined);
  }
}
