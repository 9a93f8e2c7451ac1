/** From whatever was thrown to the sentence, the hints and the exit code that a user gets. */
import { type ErrorCode, MusterError, messageOf } from '@muster/common/errors';
import type { Context } from './context.ts';
import { type ExitCode, exitCodes } from './exitCodes.ts';
import { coloursFor } from './output/colours.ts';
import { printable } from './output/text.ts';

/** An error of the CLI's own: the message names the thing and the place, the hints say what to do next. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;
  readonly hints: readonly string[];

  constructor(
    message: string,
    options: ErrorOptions & { readonly exitCode?: ExitCode; readonly hints?: readonly string[] } = {},
  ) {
    super(message, options);
    this.exitCode = options.exitCode ?? exitCodes.refused;
    this.hints = options.hints ?? [];
  }
}

/** The call itself is wrong; sending it again is useless. */
export function usageError(message: string, ...hints: readonly string[]): CliError {
  return new CliError(message, { exitCode: exitCodes.usage, hints });
}

export interface Failure {
  readonly message: string;
  readonly hints: readonly string[];
  readonly exitCode: ExitCode;
  /** Nobody foresaw it: a bug of ours. */
  readonly unexpected: boolean;
}

export function failureOf(error: unknown, programName: string): Failure {
  if (error instanceof CliError) return { ...pick(error), unexpected: false };
  if (error instanceof MusterError) {
    return {
      message: error.message,
      hints: hintsFor(error, programName),
      exitCode: error.code === 'invalid' ? exitCodes.usage : exitCodes.refused,
      unexpected: error.code === 'internal',
    };
  }
  return {
    message: messageOf(error),
    hints: ['This is a bug in Muster. MUSTER_DEBUG=1 shows where it happened.'],
    exitCode: exitCodes.refused,
    unexpected: true,
  };
}

function pick({ message, hints, exitCode }: CliError): Omit<Failure, 'unexpected'> {
  return { message, hints, exitCode };
}

function hintsFor(error: MusterError, programName: string): readonly string[] {
  if (error.code === 'unavailable' && error.message.startsWith('no coordinator answers')) {
    return [`Start one on this machine with: ${programName} up`];
  }
  const hint: Partial<Record<ErrorCode, string>> = {
    unauthenticated: 'Check MUSTER_TOKEN, --token-file or --data.',
    deadline_exceeded: 'The coordinator is there but busy or stuck; its log says more.',
    internal: "The coordinator's log says more.",
  };
  const found = hint[error.code];
  return found === undefined ? [] : [found];
}

/** Prints `muster: what is wrong` and the hints below it. */
export async function reportFailure(error: unknown, context: Context): Promise<Failure> {
  const { io, environment } = context;
  const failure = failureOf(error, environment.programName);
  const colours = coloursFor(io.stderr, environment);
  const lines = [
    `${colours.red('muster:')} ${printable(failure.message, { keepLines: true })}`,
    ...failure.hints.map((hint) => printable(hint, { keepLines: true })),
    ...(environment.debug && error instanceof Error ? [stackOf(error)] : []),
  ];
  await io.stderr.write(`${lines.join('\n')}\n`);
  return failure;
}

function stackOf(error: Error): string {
  const stack = error.stack ?? String(error);
  return error.cause instanceof Error ? `${stack}\ncaused by: ${stackOf(error.cause)}` : stack;
}

/** `ENOENT` and its kin in words; null for other errors. */
export function fileErrorReason(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'it does not exist',
    ENOTDIR: 'a part of the path is no directory',
    EISDIR: 'it is a directory',
    EACCES: 'permission denied',
    EPERM: 'permission denied',
    EROFS: 'the file system is read-only',
    ENOSPC: 'no space left on the disk',
    ELOOP: 'too many symbolic links',
    ENAMETOOLONG: 'the path is too long',
  };
  return typeof code === 'string' ? (reasons[code] ?? null) : null;
}
