/** What a reader finds documentation by: indexes that list every page, decisions with a date, checklists that name real files. */
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { expectNone, lineOf, repositoryFiles, type SourceFile } from './source.ts';

const files = repositoryFiles();

/** The pages of one folder, without its index. */
function pagesOf(folder: string): readonly SourceFile[] {
  const here = files.filter(({ path }) => posix.dirname(path) === folder && path.endsWith('.md'));
  return here.filter(({ path }) => posix.basename(path) !== 'README.md');
}

function textOf(path: string): string {
  return files.find((file) => file.path === path)?.text ?? '';
}

// ---- Every page is in its index

function unlisted(pages: readonly SourceFile[], index: SourceFile): string[] {
  const folder = posix.dirname(index.path);
  const links = Array.from(index.text.matchAll(/\]\(([^)#\s]+)/g), ([, link = '']) =>
    posix.join(folder, link),
  );
  return pages.filter(({ path }) => !links.includes(path)).map(({ path }) => `${path}: not in ${index.path}`);
}

/** index => folders whose pages it lists. */
const indexes: Readonly<Record<string, readonly string[]>> = {
  'docs/README.md': ['docs', '.'],
  'docs/decisions/README.md': ['docs/decisions'],
  'docs/checklists/README.md': ['docs/checklists'],
};

test('the checker sees a page that no index lists', () => {
  const index = { path: 'docs/README.md', text: '| [a](a.md) | [b](sub/b.md#part) |' };
  const pages = ['docs/a.md', 'docs/sub/b.md', 'docs/c.md'].map((path) => ({ path, text: '' }));
  expect(unlisted(pages, index)).toEqual(['docs/c.md: not in docs/README.md']);
});

test.each(Object.entries(indexes))('%s lists every page', (path, folders) => {
  expectNone(
    folders.flatMap((folder) => unlisted(pagesOf(folder), { path, text: textOf(path) })),
    'A page that no index lists is found by nobody: add a row.',
  );
});

// ---- Every decision has a date and a status, on its page and in the index

const statusLine =
  /^# .+\n\n\*\*Status:\*\* (proposed|accepted|superseded by \[[\w-]+\]\([\w-]+\.md\)), (\d{4}-\d\d-\d\d)\n\n/;

function undated(decisions: readonly SourceFile[], index: string): string[] {
  return decisions.flatMap(({ path, text }) => {
    const [, status = '', date = ''] = statusLine.exec(text) ?? [];
    if (date === '') return [`${path}: its third line must be "**Status:** accepted, YYYY-MM-DD"`];
    const file = posix.basename(path);
    const row = index
      .split('\n')
      .find((line) => line.startsWith(`| [${posix.basename(file, '.md')}](${file}) |`));
    const [, , listedDate, listedStatus, sentence] = (row ?? '').split('|').map((cell) => cell.trim());
    if (listedDate !== date || listedStatus !== status)
      return [`${path}: its row in the index must have "${date}" and "${status}"`];
    return sentence?.endsWith('.') ? [] : [`${path}: its row in the index needs a sentence`];
  });
}

test('the checker sees decisions without a date, and rows that differ', () => {
  const page = (name: string, status: string) => ({
    path: `docs/decisions/${name}.md`,
    text: `# A title\n\n${status}\n\nText.\n`,
  });
  const decisions = [
    page('good', '**Status:** accepted, 2026-01-02'),
    page('old', '**Status:** superseded by [good](good.md), 2026-01-03'),
    page('undated', '**Status:** accepted'),
    page('other', '**Status:** proposed, 2026-01-02'),
    page('short', '**Status:** accepted, 2026-01-02'),
  ];
  const index = `| [good](good.md) | 2026-01-02 | accepted | It is good. |
| [old](old.md) | 2026-01-03 | superseded by [good](good.md) | It was good. |
| [other](other.md) | 2026-01-02 | accepted | It differs. |
| [short](short.md) | 2026-01-02 | accepted | |
`;
  expect(undated(decisions, index)).toEqual([
    'docs/decisions/undated.md: its third line must be "**Status:** accepted, YYYY-MM-DD"',
    'docs/decisions/other.md: its row in the index must have "2026-01-02" and "proposed"',
    'docs/decisions/short.md: its row in the index needs a sentence',
  ]);
});

test('every decision has a date and a status', () => {
  expectNone(
    undated(pagesOf('docs/decisions'), textOf('docs/decisions/README.md')),
    'A reader must know how old a decision is and whether it still holds: see docs/decisions/README.md.',
  );
});

// ---- Checklists name files that exist

const topFolders = /^(?:packages|docs|test|proto|scripts|deploy|bench|examples)\//;
const isFileName = /^[\w./-]+\.(?:ts|mjs|proto|md|yml|json|sql)$|^[\w./-]+\/$/;

/**
 * A name that begins with a folder of the repository must be there. A shorter one, such as `types.ts` or `hooks/`, is looked for
 * in the folders of the full names before it on the same page, and in those above them up to the package.
 */
function missingFiles({ path, text }: SourceFile, exists: (path: string) => boolean): string[] {
  const folders = new Set<string>();
  return Array.from(text.matchAll(/`([^`\n]+)`/g)).flatMap(({ 1: name = '', index }) => {
    if (!isFileName.test(name)) return [];
    const isFound = topFolders.test(name)
      ? exists(name)
      : [...folders].some((folder) => exists(`${folder}/${name}`));
    if (topFolders.test(name)) addFolders(folders, name);
    return isFound ? [] : [`${path}:${lineOf(text, index)}: ${name} does not exist`];
  });
}

function addFolders(folders: Set<string>, name: string): void {
  let folder = name.endsWith('/') ? name.slice(0, -1) : posix.dirname(name);
  for (; folder.includes('/'); folder = posix.dirname(folder)) folders.add(folder);
}

test('the checker sees names of files that do not exist', () => {
  const text = `1. \`packages/a/src/x/y.ts\`, \`z.ts\`, \`x/\`, \`gone.ts\`; \`a.b\` and \`npm run check\` are no files.
2. \`packages/a/src/gone.ts\` and \`packages/a/src/w/\`.
`;
  const there = ['packages/a/src/x/y.ts', 'packages/a/src/x/z.ts', 'packages/a/src/x/', 'packages/a/src/w/'];
  expect(missingFiles({ path: 'c.md', text }, (path) => there.includes(path))).toEqual([
    'c.md:1: gone.ts does not exist',
    'c.md:2: packages/a/src/gone.ts does not exist',
  ]);
});

test('checklists name files that exist', () => {
  const paths = new Set(files.map(({ path }) => path));
  for (const path of Array.from(paths)) addParents(paths, path);
  expectNone(
    pagesOf('docs/checklists').flatMap((page) => missingFiles(page, (path) => paths.has(path))),
    'A checklist that names a file which was moved stops people at its first step.',
  );
});

function addParents(paths: Set<string>, path: string): void {
  for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder))
    paths.add(`${folder}/`);
}
