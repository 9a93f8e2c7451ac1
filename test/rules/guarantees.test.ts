/** docs/guarantees.md defines every guarantee that is cited by its number, and names files that exist. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectNone, isGenerated, lineOf, repositoryFiles, root, type SourceFile } from './source.ts';

const page = 'docs/guarantees.md';
const ownPath = 'test/rules/guarantees.test.ts';
const labels = ['Kept by', 'Tested by', 'Depends on'] as const;

interface Guarantee {
  /** `G2` */
  readonly number: string;
  readonly text: string;
}

/** The sections of the page, in its order. */
function guaranteesIn(text: string): readonly Guarantee[] {
  const sections = text.split(/^### (?=G\d+$)/m).slice(1);
  return sections.map((section) => ({ number: section.split('\n')[0] ?? '', text: section }));
}

/** @param exists of a path from the root of the repository */
function faultsOf({ number, text }: Guarantee, exists: (path: string) => boolean): readonly string[] {
  const missing = labels
    .filter((label) => !text.includes(`\n- **${label}:** `))
    .map((label) => `has no "${label}"`);
  const statement = /^G\d+\n\n\*\*[A-Z]/.test(text) ? [] : ['does not begin with its statement'];
  const [, keepers = '', testers = ''] = text.split(/^- \*\*(?:Kept by|Tested by):\*\* /m);
  const named = [keepers, testers].filter((part) => pathsIn(part).length === 0).map(() => 'names no file');
  const gone = pathsIn(text)
    .filter((path) => !exists(path) && !exists(`packages/${path}`))
    .map((path) => `names ${path}, which does not exist`);
  return [...statement, ...missing, ...named, ...gone].map((fault) => `${number} ${fault}`);
}

/** What is set as code and has a folder in it. */
function pathsIn(text: string): readonly string[] {
  return [...text.matchAll(/`([a-zA-Z][\w.-]*\/[\w./-]*)`/g)].map(([, path = '']) => path);
}

/** Checks of the simulation that report a violation of a guarantee, and are not named by its section. */
function unnamedChecks(files: readonly SourceFile[], guarantees: readonly Guarantee[]): readonly string[] {
  const checks = files.filter(({ path }) => /^test\/sim\/checks\/\w+\.ts$/.test(path));
  return checks.flatMap(({ path, text }) => {
    const numbers = new Set(Array.from(text.matchAll(/'(G\d+)'/g), ([, number]) => number));
    return guarantees
      .filter((each) => numbers.has(each.number) && !each.text.includes(`\`${path}\``))
      .map(({ number }) => `${number} does not name ${path}`);
  });
}

function undefinedNumbers({ path, text }: SourceFile, defined: ReadonlySet<string>): readonly string[] {
  return [...text.matchAll(/\bG[1-9]\d?\b/g)]
    .filter(([number]) => !defined.has(number))
    .map(({ 0: number, index }) => `${path}:${lineOf(text, index)}: ${number}`);
}

test('the checker sees numbers without a section, parts that are missing, and files that are gone', () => {
  const text = `# Guarantees
### G1

**Holds.**

- **Kept by:** \`coordinator/src/loop.ts\`
- **Tested by:** the simulation (\`test/sim/gone.ts\`)
- **Depends on:** a disk.

### G2

- **Kept by:** nobody
- **Tested by:** \`coordinator/src/loop.ts\`
`;
  const guarantees = guaranteesIn(text);
  expect(guarantees.map(({ number }) => number)).toEqual(['G1', 'G2']);
  const exists = (path: string) => path === 'packages/coordinator/src/loop.ts';
  expect(guarantees.flatMap((each) => faultsOf(each, exists))).toEqual([
    'G1 names test/sim/gone.ts, which does not exist',
    'G2 does not begin with its statement',
    'G2 has no "Depends on"',
    'G2 names no file',
  ]);
  const check = { path: 'test/sim/checks/log.ts', text: "must(seq === 1, 'G2', 'follows');" };
  expect(unnamedChecks([check], guarantees)).toEqual(['G2 does not name test/sim/checks/log.ts']);
  const file = { path: 'a.ts', text: "// a second attempt (G2)\nassertInvariant(true, 'G12', '');" };
  expect(undefinedNumbers(file, new Set(['G1', 'G2']))).toEqual(['a.ts:2: G12']);
});

test('each guarantee has its statement, its keepers, its tests and what it depends on', () => {
  const guarantees = guaranteesIn(readFileSync(join(root, page), 'utf8'));
  expect(guarantees.map(({ number }) => number)).toEqual(guarantees.map((_, index) => `G${index + 1}`));
  expect(guarantees.length).toBeGreaterThan(0);
  const exists = (path: string) => existsSync(join(root, path));
  expectNone(
    [
      ...guarantees.flatMap((each) => faultsOf(each, exists)),
      ...unnamedChecks(repositoryFiles(), guarantees),
    ],
    `A reader of ${page} has to find who keeps a guarantee and what tests it.`,
  );
});

test('every guarantee that is cited has its section', () => {
  const defined = new Set(guaranteesIn(readFileSync(join(root, page), 'utf8')).map(({ number }) => number));
  const files = repositoryFiles().filter(
    ({ path }) => path !== ownPath && !isGenerated(path) && /\.(?:ts|mjs|md|yml|proto|sh)$/.test(path),
  );
  expectNone(
    files.flatMap((file) => undefinedNumbers(file, defined)),
    `A number that ${page} does not define says nothing to its reader.`,
  );
});
