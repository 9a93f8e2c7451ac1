/** What commands have in common that ask the coordinator and print its answer. */
import type { MusterApi } from '@muster/common/wire/client';
import type { Command } from 'commander';
import { type ConnectionFlags, withConnection } from './connection.ts';
import type { Context } from './context.ts';
import { CliError } from './errors.ts';
import { type ExitCode, exitCodes } from './exitCodes.ts';
import { type OutputFlags, withOutput } from './flags.ts';
import { coloursFor } from './output/colours.ts';
import { writeJson } from './output/json.ts';
import type { View } from './output/table.ts';
import { withSession } from './session.ts';

/** The flags of `withQuery`. */
export interface QueryFlags extends ConnectionFlags, OutputFlags {}

export function withQuery(command: Command): Command {
  return withConnection(withOutput(command));
}

export function viewOf({ io, environment, clock }: Context): View {
  return {
    width: io.stdout.columns(),
    colours: coloursFor(io.stdout, environment),
    nowMs: clock.wallMs(),
    unicode: environment.unicode,
    programName: environment.programName,
  };
}

/** How an answer is shown to a person. */
export type TextOf<Answer> = (answer: Answer, view: View) => string;

/**
 * Prints an answer: with `-o json` as it is, else as a text.
 * @param noteOf for stderr, after the text; may be empty. JSON comes without it
 */
export async function print<Answer>(
  context: Context,
  { output }: OutputFlags,
  answer: Answer,
  textOf: TextOf<Answer>,
  noteOf: TextOf<Answer> = () => '',
): Promise<ExitCode> {
  const { stdout, stderr } = context.io;
  if (output === 'json') await writeJson(stdout, answer);
  else {
    const view = viewOf(context);
    await stdout.write(textOf(answer, view));
    await stderr.write(noteOf(answer, view));
  }
  return exitCodes.ok;
}

/** Asks the coordinator, then prints its answer. */
export async function ask<Answer>(
  context: Context,
  flags: QueryFlags,
  question: (api: MusterApi) => Promise<Answer>,
  textOf: TextOf<Answer>,
  noteOf?: TextOf<Answer>,
): Promise<ExitCode> {
  const answer = await withSession(context, flags, ({ api }) => question(api));
  return print(context, flags, answer, textOf, noteOf);
}

/** Before something that runs is ended by a command whose plain purpose is another one. */

export interface ForceFlag {
  readonly force?: boolean;
}

/**
 * Asks on a terminal; anywhere else, and for any answer but y, it is refused.
 * @param consequence one sentence without its full stop: what would end
 * @param command what to type to do it anyway
 * @throws {CliError} unless a person has confirmed
 */
export async function requireConsent({ io }: Context, consequence: string, command: string): Promise<void> {
  if (io.stdin.isTerminal && io.stderr.isTerminal) {
    await io.stderr.write(`${consequence}. Continue? [y/N] `);
    const key = await new Promise<string>((resolve) => {
      const giveBack = io.stdin.onKeys((keys) => {
        giveBack();
        resolve(keys);
      });
    });
    const isYes = /^y/i.test(key);
    await io.stderr.write(isYes ? 'y\n' : 'n\n');
    if (isYes) return;
    throw new CliError('nothing was changed');
  }
  throw new CliError(consequence, { hints: [`To confirm: ${command}`] });
}
