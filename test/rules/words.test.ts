/** Keeps documentation, comments and the texts of the programs to the words of docs/style.md. */
import { expect, test } from 'vitest';
import {
  codeOnly,
  expectNone,
  isGenerated,
  lineOf,
  productFiles,
  repositoryFiles,
  type SourceFile,
} from './source.ts';

interface Word {
  readonly pattern: RegExp;
  readonly better: string;
}

/** Only what is wrong wherever it stands: a word with a good meaning besides is left to reviews. */
const words: readonly Word[] = [
  { pattern: /\b(?:mend(?:s|ed|ing)?)\b/gi, better: 'fix' },
  { pattern: /\banew\b/gi, better: 'again, from scratch, re…' },
  { pattern: /\b(?:giv(?:e|es|en|ing)|gave) way\b/gi, better: 'preempt' },
  { pattern: /\bleft out\b/gi, better: 'excluded; default:' },
  { pattern: /\b(?:fell|falls?|fallen) silent\b/gi, better: 'stopped responding, is silent' },
  { pattern: /\bnone is known\b/gi, better: 'none detected' },
  { pattern: /\b(?:is|are) to (?:be|end|have|run|start|stop)\b/g, better: 'will, must' },
  {
    pattern: /\b(?:goes|went|gone|go|going) on\b(?! (?:line|disk|one))/gi,
    better: 'continue, resume, keep running',
  },
  {
    pattern: /\b(?:without|no|there is) word\b(?! list)|\bword from\b|\bsomebody's word\b/gi,
    better: 'contact with',
  },
  { pattern: /\b(?:the last|all but|every|for|in|after) so (?:long|many)\b/gi, better: 'DURATION, COUNT' },
  { pattern: /"(?: is|,) no (?!longer|such)[a-z]+/g, better: 'invalid THING "…"' },
  { pattern: /\b(?:is|are) called\b/gi, better: 'is named' },
  { pattern: /\bto blame\b/gi, better: 'root cause, attributed to' },
  { pattern: /\bwhom\b/gi, better: 'a sentence with an active verb' },
  { pattern: /\bplace is free\b|\bplace in the queue\b/gi, better: 'released; queue position' },
  { pattern: /\b(?:further|next|last) trials?\b/gi, better: 'retry' },
  { pattern: /\bas it comes\b/gi, better: 'built-in; live' },
  { pattern: /\bbegins? again\b/gi, better: 'restart, resume' },
  { pattern: /\band said\b|\bsays so\b|\bsaid so\b|\bsay so\b/gi, better: 'reported, reports that' },
  { pattern: /\b(?:is|are|was|were) whole\b/gi, better: 'intact' },
  { pattern: /\bfor want of\b/gi, better: 'because … is missing' },
  { pattern: /\bsee to it\b/gi, better: 'make sure' },
  { pattern: /\bwho pays\b/gi, better: 'project (accounting)' },
  { pattern: /\bas it should be\b/gi, better: 'wrong, has a problem' },
  { pattern: /\bstands? still\b/gi, better: 'hangs, makes no progress' },
  { pattern: /\bany more\b/gi, better: 'no longer' },
  { pattern: /\ball the same\b/gi, better: 'anyway' },
  { pattern: /\b(?:it|which) said\b/gi, better: 'reported, sent, printed' },
  { pattern: /\bis no (?:file|regular|JSON|whole|message)\b/g, better: 'is not a …' },
];

/** The texts in code: what stands in quotes and in templates. Every other character is blank, and keeps its place. */
function textsOf(code: string): string {
  const texts = code.split('').fill(' ');
  codeOnly(
    code,
    () => {},
    (text, index) => {
      for (let at = 0; at < text.length; at += 1) texts[index + at] = text[at] ?? ' ';
    },
  );
  for (const { index } of code.matchAll(/\n/g)) texts[index] = '\n';
  return texts.join('');
}

/** The comments of a .proto file are the documentation of the API. */
function commentsOf(proto: string): string {
  const lines = proto.split('\n').map((line) => (line.includes('//') ? line.slice(line.indexOf('//')) : ''));
  return lines.join('\n');
}

function misused({ path, text }: SourceFile): string[] {
  return words.flatMap(({ pattern, better }) =>
    [...text.matchAll(pattern)].map(
      ({ 0: found, index }) => `${path}:${lineOf(text, index)}: "${found}" (better: ${better})`,
    ),
  );
}

const comment = /\/\*[\s\S]*?\*\/|(?<=^\s*|[;{,(\]})] )\/\/ .*$/gm;

/** A comment is read as one line, because a sentence may be broken anywhere. */
function misusedInComments({ path, text }: SourceFile): string[] {
  return [...text.matchAll(comment)].flatMap(({ 0: found, index }) =>
    words.flatMap(({ pattern, better }) =>
      [...found.replaceAll(/\n\s*\*\s?/g, ' ').matchAll(pattern)].map(
        ([word]) => `${path}:${lineOf(text, index)}: "${word}" (better: ${better})`,
      ),
    ),
  );
}

test('the checker sees the words in comments, also where a line ends', () => {
  const code = "/**\n * It goes\n * on.\n */\nconst anew = 'mend'; // Left out: none.\n";
  expect(misusedInComments({ path: 'a.ts', text: code })).toEqual([
    'a.ts:1: "goes on" (better: continue, resume, keep running)',
    'a.ts:5: "Left out" (better: excluded; default:)',
  ]);
});

test('the checker sees the words, and only in what users read', () => {
  const code = 'const anew = 1; // mend it\nsay(\'it goes on\', `${x} is to be left`, "mended");\n';
  expect(misused({ path: 'a.ts', text: textsOf(code) })).toEqual([
    'a.ts:2: "mended" (better: fix)',
    'a.ts:2: "is to be" (better: will, must)',
    'a.ts:2: "goes on" (better: continue, resume, keep running)',
  ]);
  const proto = '// It gives way.\nmessage anew { // left out\n}\n';
  expect(misused({ path: 'a.proto', text: commentsOf(proto) })).toEqual([
    'a.proto:1: "gives way" (better: preempt)',
    'a.proto:2: "left out" (better: excluded; default:)',
  ]);
  expect(misused({ path: 'a.md', text: 'A whole number; the job runs on node-1; no word list.' })).toEqual(
    [],
  );
});

/** The list of words itself, and what no user reads. */
const exempt = /^docs\/style\.md|ixture\.ts$/;

test('what users read keeps to the words of docs/style.md', () => {
  const files = repositoryFiles();
  const read = [
    ...productFiles().map(({ path, text }) => ({ path, text: textsOf(text) })),
    ...files
      .filter(({ path }) => path.endsWith('.proto'))
      .map(({ path, text }) => ({ path, text: commentsOf(text) })),
    ...files.filter(({ path }) => path.endsWith('.md') && !exempt.test(path)),
  ];
  expectNone(read.flatMap(misused), 'Users know the terms of the field and no others: see docs/style.md.');
});

test('comments keep to the words of docs/style.md', () => {
  const files = repositoryFiles().filter(({ path }) => /\.m?ts$/.test(path) && !isGenerated(path));
  const found = files.filter(({ path }) => path !== 'test/rules/words.test.ts').flatMap(misusedInComments);
  expectNone(found, 'Who reads the code knows the terms of the field and no others: see docs/style.md.');
});
