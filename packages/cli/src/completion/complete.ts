/** `muster __complete`, which the completion scripts call at every press of Tab. */
import { Command } from 'commander';
import { type CommandEntry, type Context, defineCommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type CompletionCandidate, candidatesFor, filesMarker } from './candidates.ts';

/** @param marked the words up to the cursor, each behind a `:`, so that none of them looks like a flag of ours */
export async function complete(
  table: readonly CommandEntry[],
  marked: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const words = marked.map((word) => word.replace(/^:/, ''));
  const current = words.at(-1) ?? '';
  const candidates = await candidatesAt(table, words, context);
  const lines = candidates
    .filter(({ value }) => value === filesMarker || value.startsWith(current))
    .map(({ value, description }) => (description === '' ? `${value}\n` : `${value}\t${description}\n`));
  await context.io.stdout.write(lines.join(''));
  return exitCodes.ok;
}

async function candidatesAt(
  table: readonly CommandEntry[],
  words: readonly string[],
  context: Context,
): Promise<readonly CompletionCandidate[]> {
  if (words.length <= 1) return table.map(({ name, summary }) => ({ value: name, description: summary }));
  const entry = table.find(({ name }) => name === words[0]);
  if (entry === undefined) return [];
  const command = new Command(entry.name);
  defineCommand(command, (await entry.load()).command);
  const below = command.commands.find((each) => each.name() === words[1]);
  return below === undefined || words.length <= 2
    ? candidatesFor(command, words.slice(1), context)
    : candidatesFor(below, words.slice(2), context);
}
