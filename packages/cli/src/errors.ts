/** From whatever was thrown to the sentence, the hints and the exit code that a user gets. */
import { type ErrorCode, MusterError, messageOf, type SpecProblemView } from '@muster/common/errors';
import type { SpecProblem } from '@muster/common/spec/types';
import type { Context } from './context.ts';
import { type ExitCode, exitCodeOf } from './exitCodes.ts';
import { coloursFor } from './output/colours.ts';
import { jsonText } from './output/json.ts';
import { printable, wrapText } from './output/text.ts';

/** Where it was written is known here only, and not for what the coordinator refused. */
type Problem = SpecProblemView & Partial<Pick<SpecProblem, 'line' | 'column' | 'flag'>>;

interface CliErrorOptions extends ErrorOptions {
  /** Default: `failed_precondition`. */
  readonly code?: ErrorCode;
  readonly hints?: readonly string[];
  readonly problems?: readonly Problem[];
}

/** An error of the CLI's own: the message names the thing and the place, the hints say what to do next. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: ErrorCode;
  readonly hints: readonly string[];
  /** Of a job spec. The hints hold them too, as people read them. */
  readonly problems: readonly Problem[];

  constructor(message: string, options: CliErrorOptions = {}) {
    super(message, options);
    this.code = options.code ?? 'failed_precondition';
    this.hints = options.hints ?? [];
    this.problems = options.problems ?? [];
  }
}

/** The call itself is wrong; sending it again is useless. */
export function usageError(message: string, ...hints: readonly string[]): CliError {
  return new CliError(message, { code: 'invalid', hints });
}

export interface Failure {
  readonly message: string;
  readonly code: ErrorCode;
  readonly hints: readonly string[];
  readonly problems: readonly Problem[];
  readonly exitCode: ExitCode;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CliError) return failure(error, error.hints);
  if (error instanceof MusterError) return failure(error, hintsFor(error));
  const hints = ['This is a bug in Muster. MUSTER_DEBUG=1 shows where it happened.'];
  return failure({ message: messageOf(error), code: 'internal', problems: [] }, hints);
}

function failure(
  { message, code, problems }: Pick<CliError, 'message' | 'code' | 'problems'>,
  hints: readonly string[],
): Failure {
  return { message, code, hints, problems, exitCode: exitCodeOf[code] };
}

const expiredHint =
  'An admin creates another one: `muster user code NAME` to log in, `muster token issue LABEL --user NAME` for a program.';

function hintsFor(error: MusterError): readonly string[] {
  const hint: Partial<Record<ErrorCode, string>> = {
    unauthenticated: 'Check MUSTER_TOKEN, --token-file or --data.',
    deadline_exceeded: 'The coordinator is there but busy or stuck; its log says more.',
    internal: "The coordinator's log says more.",
  };
  const isExpired = error.code === 'unauthenticated' && error.message.includes(' has expired: ');
  const found = isExpired ? expiredHint : hint[error.code];
  return found === undefined ? [] : [found];
}

/** Prints `muster: what is wrong` and the hints below it; for programs the error object, as one line. */
export async function reportFailure(
  error: unknown,
  context: Context,
  format: 'text' | 'json' = 'text',
): Promise<Failure> {
  const { io, environment } = context;
  const failed = failureOf(error);
  const stack = environment.debug && error instanceof Error ? stackOf(error) : null;
  await io.stderr.write(format === 'json' ? errorObject(failed, stack) : errorText(failed, stack, context));
  return failed;
}

function errorText({ message, hints }: Failure, stack: string | null, context: Context): string {
  const { red } = coloursFor(context.io.stderr, context.environment);
  const columns = context.io.stderr.columns();
  const wrapped = (text: string) => wrapText(printable(text, { keepLines: true }), columns);
  const lines = [
    wrapped(`muster: ${message}`).replace(/^muster:/, red('muster:')),
    ...hints.map(wrapped),
    ...(stack === null ? [] : [printable(stack, { keepLines: true })]),
  ];
  return `${lines.join('\n')}\n`;
}

/** One line, so that a program finds it as the last one of stderr. docs/json.md describes it. */
function errorObject({ message, code: kind, hints, problems: found }: Failure, stack: string | null): string {
  // The problems are the hints, structured.
  const hint = found.length > 0 || hints.length === 0 ? null : hints.join('\n');
  const problems = found.map(({ line = null, column = null, flag = null, ...problem }) => {
    return { ...problem, line, column, flag };
  });
  // By the names of gRPC's status codes.
  const code = kind === 'invalid' ? 'invalid_argument' : kind;
  const error = { code, message, hint, problems, ...(stack === null ? {} : { stack }) };
  return `${jsonText({ error })}\n`;
}

/** Whether the caller is a program that asked for JSON. Flags may be wrong themselves, so nothing is parsed here. */
export function failureFormat(argv: readonly string[]): 'text' | 'json' {
  const dashes = argv.indexOf('--');
  const flags = dashes < 0 ? argv : argv.slice(0, dashes);
  const isJson = flags.some(
    (word, index) =>
      ['-ojson', '-o=json', '--output=json'].includes(word) ||
      (word === 'json' && ['-o', '--output'].includes(flags[index - 1] ?? '')),
  );
  return isJson ? 'json' : 'text';
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
