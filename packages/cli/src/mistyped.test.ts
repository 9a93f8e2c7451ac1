import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { commandTable } from './commandTable.ts';
import { defineCommand } from './context.ts';
import { exitCodes } from './exitCodes.ts';
import { commandSynonyms, flagSynonyms, type Synonym } from './mistyped.ts';
import { runCli } from './program.ts';
import { newCall } from './testing/testContext.ts';

async function hints(...argv: readonly string[]): Promise<string> {
  const { context, stderr } = newCall(null);
  expect(await runCli(argv, context)).toBe(exitCodes.usage);
  const [, ...rest] = stderr().trimEnd().split('\n');
  return rest.join('\n');
}

async function defined(name: string): Promise<Command> {
  const entry = commandTable.find((each) => each.name === name);
  if (entry === undefined) throw new Error(`there is no command ${name}`);
  const command = new Command(name);
  defineCommand(command, (await entry.load()).command);
  return command;
}

/** Every flag that the line holds, as far as our own flags go. */
function unknownFlags(line: string, command: Command): readonly string[] {
  const [ours = ''] = line.split(/(?:^| )-- /);
  const known = new Set(command.options.flatMap(({ long, short }) => [long, short]));
  return (ours.match(/(?<![^ ])-[-\w]+/g) ?? []).filter((flag) => !known.has(flag));
}

test.each([
  ['squeue', 'Try: muster jobs'],
  ['ls', 'Try: muster jobs'],
  ['status', 'Try: muster job JOB, or muster explain JOB'],
  ['run', 'Try: muster submit -- COMMAND, or muster submit -f FILE'],
  ['scancel', 'Try: muster stop JOB'],
  ['sinfo', 'Try: muster nodes, or muster node NODE'],
])('%s is another tool’s word', async (word, hint) => {
  expect(await hints(word)).toBe(`${hint}\nSee: muster --help`);
});

test('what is not there is reported with what is nearest', async () => {
  expect(await hints('exec', 'job_1', 'bash')).toBe(
    'There is no shell in a running job. Nearest:\nTry: muster logs -f JOB\nSee: muster --help',
  );
});

test.each([
  [['submit', '--time', '1:00:00'], 'Try: --max-runtime 24h'],
  [['submit', '-N', '2'], 'Try: --nodes 2'],
  [['submit', '--mem', '64G'], 'Try: --memory 64G'],
  [['submit', '--gres=gpu:4'], 'On each node:\nTry: --gpus 8'],
  [['submit', '--hold'], 'A job cannot be held. Nearest, one that waits for another:\nTry: --after JOB'],
  [
    ['stop', '--state', 'queued'],
    'It stops the jobs that are named, as many as you like; `jobs --all --state queued -o json` finds their ids.',
  ],
  [['jobs', '--stat', 'queued'], 'Did you mean --state?'],
  [['submit', '--gpu', '1'], 'Did you mean --gpus?'],
])('%j is another tool’s flag, or a slip', async (argv, hint) => {
  expect(await hints(...argv)).toBe(`${hint}\nSee: muster ${argv[0]} --help`);
});

test('words below a command are known too', async () => {
  expect(await hints('node', 'cordon', 'gpu-1')).toBe('Try: muster node drain NODE\nSee: muster node --help');
  expect(await hints('scontrol', 'hold', 'job_1')).toContain('A job cannot be held.');
  expect(await hints('node', 'drian', 'gpu-1')).toMatch(/^Subcommands: add, drain, undrain, /);
  expect(await hints('token', 'crate', 'gpu-1')).toMatch(/^Did you mean create\?\nSubcommands: create, /);
  expect(await hints('token', 'ls')).toBe('Try: muster token list\nSee: muster token --help');
});

test('slips are corrected, but not into what ends work', async () => {
  expect(await hints('sumbit')).toBe('Did you mean submit?\nSee: muster --help');
  for (const word of ['sto', 'stopp', 'reque', 'requeu'])
    expect(await hints(word)).not.toMatch(/stop|requeue/);
  expect(await hints('token', 'revok')).not.toContain('Did you mean');
});

describe('every proposal', () => {
  test.each(commandSynonyms.flatMap(({ lines }) => lines))('%s exists', async (line) => {
    if (line.startsWith('--')) return expect(line).toBe('--version');
    const [name = '', word] = line.split(' ');
    const command = await defined(name);
    const below = command.commands.find((each) => each.name() === word) ?? command;
    expect(unknownFlags(line, below)).toEqual([]);
    if (['node', 'token', 'logs'].includes(name) && /^[a-z]/.test(word ?? ''))
      expect(below.name()).toBe(word);
  });

  test.each(Object.keys(flagSynonyms))('of a flag exists at %s, and the word does not', async (name) => {
    const command = await defined(name);
    const own = new Set(command.options.flatMap(({ long, short }) => [long, short]));
    for (const { words, lines } of flagSynonyms[name] as readonly Synonym[]) {
      for (const line of lines) expect(unknownFlags(line, command), line).toEqual([]);
      expect(words.filter((word) => own.has(word))).toEqual([]);
    }
  });

  test('for a word that reads only reads', () => {
    const ending = commandSynonyms.filter(({ lines }) =>
      lines.some((line) => /^(?:stop|requeue|down|node (?:drain|remove)|token revoke)\b/.test(line)),
    );
    const asked =
      /cancel|kill|del|abort|terminate|rm|restart|rerun|retry|resubmit|resume|requeue|cordon|drain/;
    for (const word of ending.flatMap(({ words }) => words)) expect(word).toMatch(asked);
  });

  test('is for one word, and no word is a command', () => {
    const words = commandSynonyms.flatMap((synonym) => synonym.words);
    expect(new Set(words).size).toBe(words.length);
    const commands = new Set(commandTable.map(({ name }) => name));
    expect(words.filter((word) => commands.has(word))).toEqual([]);
  });
});
