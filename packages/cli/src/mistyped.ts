/** From a word that is no command or flag to what was probably meant. */
import { closest } from '@muster/common/spec/suggest';
import type { Command, CommanderError } from 'commander';
import { commandSynonyms, findSynonym, flagSynonyms, harmless, type Synonym } from './synonyms.ts';

/**
 * @param words the command line without what follows `--`
 * @param command the deepest that they name
 * @returns hints; none when nothing similar is known
 */
export function mistyped(
  error: CommanderError,
  words: readonly string[],
  command: Command,
  programName: string,
): readonly string[] {
  const flag = /unknown option '([^'=]+)/.exec(error.message)?.[1];
  if (flag !== undefined) return flagHints(flag, command);
  // `muster node cordon gpu-1`: the word stands where a node's name does.
  const firstTwo = words.slice(0, 2).join(' ').toLowerCase();
  if (error.code === 'commander.excessArguments') {
    const synonym = findSynonym(commandSynonyms, firstTwo);
    return synonym === null ? subcommandHints(words[1], command) : synonymHints(synonym, `${programName} `);
  }
  const word = /unknown command '([^']+)'/.exec(error.message)?.[1];
  if (word === undefined) return [];
  const spoken = command.parent === null ? word : `${command.name()} ${word}`;
  const synonym =
    findSynonym(commandSynonyms, firstTwo) ?? findSynonym(commandSynonyms, spoken.toLowerCase());
  if (synonym !== null) return synonymHints(synonym, `${programName} `);
  return didYouMean(
    word,
    command.commands.map((each) => each.name()),
  );
}

/** All are named, for what may end work is proposed to nobody who has only mistyped something. */
function subcommandHints(word: string | undefined, { commands }: Command): readonly string[] {
  const names = commands.map((each) => each.name());
  if (names.length === 0) return [];
  return [...didYouMean(word ?? '', names), `Subcommands: ${names.join(', ')}`];
}

function flagHints(flag: string, command: Command): readonly string[] {
  const synonym = findSynonym(flagSynonyms[command.name()] ?? [], flag);
  if (synonym !== null) return synonymHints(synonym, '');
  // A slip in one letter leads anywhere.
  if (!flag.startsWith('--')) return [];
  const known = [command, ...parentsOf(command)].flatMap(({ options }) =>
    options.flatMap(({ long, hidden }) => (typeof long === 'string' && !hidden ? [long] : [])),
  );
  return didYouMean(flag, known);
}

function parentsOf({ parent }: Command): readonly Command[] {
  return parent === null ? [] : [parent, ...parentsOf(parent)];
}

function didYouMean(word: string, known: readonly string[]): readonly string[] {
  const similar = closest(word, harmless(known));
  return similar === null ? [] : [`Did you mean ${similar}?`];
}

function synonymHints(synonym: Synonym | null, before: string): readonly string[] {
  if (synonym === null) return [];
  const { note, lines } = synonym;
  const tries = lines.map((line) => `${before}${line}`).join(', or ');
  return [...(note === undefined ? [] : [note]), ...(tries === '' ? [] : [`Try: ${tries}`])];
}
