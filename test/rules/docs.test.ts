import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectNone, lineOf, repositoryFiles, root, type SourceFile } from './source.ts';

const inlineLink = /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g;
const definition = /^\[[^\]]+\]:\s*(\S+)/gm;

/** What the checker asks the disk; the planted example answers from memory. */
interface Tree {
  exists(path: string): boolean;
  /** null: not a Markdown file. */
  markdown(path: string): string | null;
}

function deadLinks({ path, text }: SourceFile, tree: Tree): string[] {
  const prose = withoutCode(text);
  return [...prose.matchAll(inlineLink), ...prose.matchAll(definition)].flatMap((match) => {
    const link = match[1] ?? '';
    if (/^[a-z][a-z+.-]*:/i.test(link)) return []; // another site
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? path : join(path, '..', decodeURIComponent(file));
    const place = `${path}:${lineOf(prose, match.index)}: ${link}`;
    if (link.startsWith('/') || target.startsWith('..')) return [`${place} leads out of the repository`];
    if (!tree.exists(target)) return [`${place} does not exist`];
    const page = anchor === undefined ? null : tree.markdown(target);
    return page === null || anchorsOf(page).has(anchor ?? '') ? [] : [`${place} has no such heading`];
  });
}

/** Code is blanked in place: it may show links of another language's syntax. */
function withoutCode(text: string): string {
  return text.replace(/^(```|~~~)[\s\S]*?^\1|`[^`\n]*`/gm, (code) => code.replace(/[^\n]/g, ' '));
}

/** As GitHub names headings. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = text.replace(/^(```|~~~)[\s\S]*?^\1/gm, '').matchAll(/^#{1,6}\s+(.+)$/gm);
  const anchors = new Set<string>();
  for (const [, heading = ''] of headings) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = plain
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-');
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again += 1) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

test('the checker sees dead links', () => {
  const pages: Readonly<Record<string, string>> = {
    'docs/b.md': '# Lost nodes, found\n## Lost nodes, found\n',
  };
  const tree: Tree = {
    exists: (path) => path in pages || path === 'README.md',
    markdown: (path) => pages[path] ?? null,
  };
  const text = `[ok](b.md) [ok](b.md#lost-nodes-found-1) [ok](https://example.org/x) [ok](../README.md "title")
\`[code](nowhere.md)\`
[bad](missing.md) [bad](b.md#other) [bad](/etc/passwd)
[ref]: gone.md
`;
  expect(deadLinks({ path: 'docs/a.md', text }, tree)).toEqual([
    'docs/a.md:3: missing.md does not exist',
    'docs/a.md:3: b.md#other has no such heading',
    'docs/a.md:3: /etc/passwd leads out of the repository',
    'docs/a.md:4: gone.md does not exist',
  ]);
});

test('every link in the documentation leads somewhere', () => {
  const disk: Tree = {
    exists: (path) => existsSync(join(root, path)),
    markdown: (path) =>
      path.endsWith('.md') && statSync(join(root, path)).isFile()
        ? readFileSync(join(root, path), 'utf8')
        : null,
  };
  const pages = repositoryFiles().filter(({ path }) => path.endsWith('.md'));
  expectNone(
    pages.flatMap((page) => deadLinks(page, disk)),
    'A reader who follows a dead link stops trusting the page.',
  );
});
