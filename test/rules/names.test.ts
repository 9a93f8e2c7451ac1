/** Keeps each exported name of the product to one thing, so that anyone who searches for it finds that thing. */
import { expect, test } from 'vitest';
import { codeOfFile, expectNone, productFiles, type SourceFile } from './source.ts';

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
