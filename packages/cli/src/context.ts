import type { Clock } from '@muster/common/clock';
import type { Command } from 'commander';
import type { Environment } from './environment.ts';
import type { ExitCode } from './exitCodes.ts';
import type { Io } from './io.ts';

/** The world as a command sees it. Tests hand in another one. */
export interface Context {
  readonly io: Io;
  readonly environment: Environment;
  readonly clock: Clock;
  /** A fresh id for one intent; the coordinator takes a repeated one for the same request. */
  newRequestId(): string;
}

/**
 * One command of `muster`. Its module is loaded only when it is called, shown its help or completed.
 *
 * `run` gets the positional arguments as commander passes them, then the flags. It returns the exit code, or throws a
 * CliError or MusterError for the user to read.
 */
export interface CommandModule {
  /** Adds arguments, flags and help texts. */
  define(command: Command): void;
  run(context: Context, ...argumentsAndFlags: never[]): Promise<ExitCode>;
}
