/** Keeps each exported name of the product to one thing, so that anyone who searches for it finds that thing, and names to the words of the field. */
import { expect, test } from 'vitest';
import {
  codeOfFile,
  expectNone,
  isGenerated,
  lineOf,
  productFiles,
  repositoryFiles,
  type SourceFile,
} from './source.ts';

/** What each module of a kind exports under the same name: it is loaded by its place. */
const sharedByKind: ReadonlySet<string> = new Set(['command']);

const declaration =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:class|const|enum|function\*?|interface|let|type) ([\w$]+)/gm;

function exportedTwice(files: readonly SourceFile[]): string[] {
  const exported = files.flatMap((file) => {
    const { path } = file;
    // An overloaded function is declared several times in one file.
    const names = new Set([...codeOfFile(file).matchAll(declaration)].map(([, name = '']) => name));
    return [...names].map((name) => ({ name, path }));
  });
  return [...Map.groupBy(exported, ({ name }) => name)]
    .filter(([name, places]) => places.length > 1 && !sharedByKind.has(name))
    .map(([name, places]) => `${name}: ${places.map(({ path }) => path).join(', ')}`);
}

test('the checker sees a name that is exported by two files', () => {
  const file = (path: string, text: string): SourceFile => ({ path: `packages/agent/src/${path}`, text });
  expect(
    exportedTwice([
      file('a.ts', 'export interface Row {}\nexport const command = 1;\n// export type Told = 1;'),
      file('b.ts', 'export type Row = 1;\nexport type Told = 2;\nconst own = 1;\nexport const command = 2;'),
      file(
        'c.ts',
        'export async function read(): Promise<1>;\nexport async function read() {}\nconst own = 2;',
      ),
    ]),
  ).toEqual(['Row: packages/agent/src/a.ts, packages/agent/src/b.ts']);
});

test('no name is exported by two files of the product', () => {
  const files = productFiles().filter(
    ({ path }) => !path.endsWith('Fixture.ts') && !path.endsWith('/conformance.ts'),
  );
  expectNone(exportedTwice(files), 'Two things have one name: name each for what it is.');
});

/** Words of earlier names, and what the field has for them. */
const replacedWords: Readonly<Record<string, string>> = {
  complaint: 'error, problem',
  complaints: 'errors, problems',
  culprit: 'faultyNode',
  doomed: 'mustKill',
  heir: 'preemptor',
  heirs: 'preemptors',
  hopeless: 'exhausted, impossible',
  lore: 'facts',
  news: 'changes',
  rival: 'conflict',
  said: 'sent, printed, reported',
  sighting: 'observation',
  sightings: 'observations',
  stranger: 'foreign',
  strangers: 'foreign',
  tell: 'send, report',
  told: 'sent, reported',
  troubles: 'problems',
  way: 'mode, path, direction',
  ways: 'modes, paths, directions',
};

/** In a form of the store that earlier versions wrote. */
const storedNames: ReadonlySet<string> = new Set(['hungToldAtMs']);

function wordsOf(name: string): readonly string[] {
  return name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split('_');
}

function replacedNames(file: SourceFile): string[] {
  const code = codeOfFile(file);
  return [...code.matchAll(/[A-Za-z_$][\w$]*/g)].flatMap(({ 0: name, index }) => {
    if (storedNames.has(name)) return [];
    const word = wordsOf(name).find((each) => Object.hasOwn(replacedWords, each));
    return word === undefined
      ? []
      : [`${file.path}:${lineOf(code, index)}: ${name} (better: ${replacedWords[word]})`];
  });
}

test('the checker sees a word inside a name, and only in code', () => {
  const text = "const lastTold = 1;\nconst away = 'told'; // said\nconst newsItem = toldest;\n";
  expect(replacedNames({ path: 'a.ts', text })).toEqual([
    'a.ts:1: lastTold (better: sent, reported)',
    'a.ts:3: newsItem (better: changes)',
  ]);
});

test('names are made of the words of the field', () => {
  const files = repositoryFiles().filter(({ path }) => path.endsWith('.ts') && !isGenerated(path));
  const names = files.filter(({ path }) => path !== 'test/rules/names.test.ts').flatMap(replacedNames);
  expectNone(names, 'A newcomer knows the words of the field: name it by one of them.');
});
