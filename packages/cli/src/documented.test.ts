/** The pages for users agree with the commands: each command is named, and each command line would be accepted. */
import { readdirSync, readFileSync } from 'node:fs';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { commandTable } from './commandTable.ts';
import { defineCommand } from './context.ts';

const repository = new URL('../../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, repository), 'utf8');

const commands = new Map<string, Command>();
for (const entry of commandTable) {
  const command = new Command(entry.name);
  defineCommand(command, (await entry.load()).command);
  commands.set(entry.name, command);
}

/** `muster …` or `./muster …` in code, without remarks behind it. What follows ` -- ` is the user's. */
function commandLinesOf(markdown: string): readonly string[] {
  const blocks = [...markdown.matchAll(/^```[^\n]*\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
    block.split('\n'),
  );
  const inline = [...markdown.replace(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map(
    ([, code = '']) => code,
  );
  return [...blocks, ...inline].flatMap((line) => {
    const [, words] = /^(?:\$ )?(?:\.\/)?muster ([a-z].*)$/.exec(line) ?? [];
    return words === undefined ? [] : [words.split(/ {2,}| #| -- /)[0] ?? ''];
  });
}

function problemOf(line: string): string | null {
  const [name = '', second = ''] = line.split(' ');
  const command = commands.get(name);
  if (command === undefined) return `muster ${line}: there is no command ${name}`;
  const below = command.commands.find((each) => each.name() === second);
  const known = [command, ...(below === undefined ? [] : [below])].flatMap(({ options }) =>
    options.flatMap(({ long, short }) => [long, short]),
  );
  const flags = line.match(/(?<=[ [])--?[a-z][-\w]*/g) ?? [];
  const unknown = flags.filter((flag) => !known.includes(flag) && flag !== '--help');
  return unknown.length === 0 ? null : `muster ${line}: unknown ${unknown.join(', ')}`;
}

test('the checker sees commands and flags that do not exist', () => {
  const page = 'Type `muster jobs --all` or `muster jbos`.\n```\n$ muster node drain X --frce   # now\n```\n';
  expect(commandLinesOf(page).map(problemOf)).toEqual([
    'muster node drain X --frce: unknown --frce',
    null,
    'muster jbos: there is no command jbos',
  ]);
});

test.each([
  'README.md',
  'examples/README.md',
  ...readdirSync(new URL('docs/', repository))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
])('%s shows only command lines that exist', (path) => {
  expect(commandLinesOf(read(path)).map(problemOf).filter(Boolean)).toEqual([]);
});

test('docs/commands.md names every command', () => {
  const names = [...commands].flatMap(([name, command]) => [
    name,
    ...command.commands.map((each) => `${name} ${each.name()}`),
  ]);
  const page = read('docs/commands.md');
  expect(names.filter((name) => !new RegExp(`\\bmuster ${name}\\b`).test(page))).toEqual([]);
});
