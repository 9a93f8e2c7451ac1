/**
 * How the rules of this folder look at the repository: its files, their imports, and their code without comments and
 * strings. Text is matched, not parsed: every file is formatted by one tool, which makes that reliable, and each rule
 * first shows on a planted example that it sees what it is looking for.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export interface SourceFile {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

const foreign = new Set(['node_modules', 'dist', '.git', 'coverage', 'results', '.compile-cache']);

let repository: readonly SourceFile[] | undefined;

/** Every text file of the repository that a person wrote, generated code included; read once for all rules of a process. */
export function repositoryFiles(): readonly SourceFile[] {
  repository ??= filesBelow(root).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
  return repository;
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return foreign.has(entry.name) ? [] : filesBelow(path);
    return entry.isFile() && !/\.(png|svg|ico|gz|log)$/.test(entry.name) ? [relative(root, path)] : [];
  });
}

export function isGenerated(path: string): boolean {
  return (
    path.startsWith('packages/common/src/gen/') ||
    path === 'package-lock.json' ||
    path.endsWith('/openapi.json') ||
    path === 'docs/events.schema.json'
  );
}

/** Tests, and what only they use: builders, fixtures, suites shared by several tests. */
export function isTestCode({ path, text }: SourceFile): boolean {
  const bringsVitest = importsOf(text).some(({ specifier }) => specifier === 'vitest');
  return path.startsWith('test/') || path.endsWith('.test.ts') || path.includes('/testing/') || bringsVitest;
}

let product: readonly SourceFile[] | undefined;

/** Code that ships: `packages/<name>/src`, without tests and generated files. */
export function productFiles(): readonly SourceFile[] {
  product ??= repositoryFiles().filter(
    (file) => /^packages\/\w+\/src\/.*\.ts$/.test(file.path) && !isGenerated(file.path) && !isTestCode(file),
  );
  return product;
}

/** Fails with the rule's reason and every place that breaks it. */
export function expectNone(problems: readonly string[], why: string): void {
  if (problems.length === 0) return;
  const error = new Error(`${why}\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  Error.captureStackTrace(error, expectNone);
  throw error;
}

export function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

/** Code of whole files, by their texts: most rules look at all of it, and blanking it takes longest. */
const codes = new Map<string, string>();

export function codeOfFile({ text }: SourceFile): string {
  const code = codes.get(text) ?? codeOnly(text);
  codes.set(text, code);
  return code;
}

/** `path:line: what` for every match of a global pattern in the code. */
export function matchesInCode(file: SourceFile, pattern: RegExp): string[] {
  const { path } = file;
  const code = codeOfFile(file);
  return [...code.matchAll(pattern)].map(
    (match) => `${path}:${lineOf(code, match.index)}: ${match[0].trim()}`,
  );
}

// ---- Code without comments and strings

const token =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/\w*|[\w$]+|\s+|[\s\S]/gy;
const templatePart = /(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y;

/**
 * The text with the inside of comments, strings, templates and regular expressions blanked. Every other character keeps
 * its place, so that an index in the result is an index in the text.
 * @param onRegExp is told every regular expression, as it is written
 * @param onText is told every string and every part of a template, with the index where it begins
 */
export function codeOnly(
  text: string,
  onRegExp: (literal: string) => void = () => {},
  onText: (literal: string, index: number) => void = () => {},
): string {
  /** For each open `${`: how many braces are open inside it. */
  const openBraces: number[] = [];
  let code = '';
  let before = '';
  const blank = (part: string) => part.replace(/[^\n]/g, ' ');
  const skipTemplate = () => {
    templatePart.lastIndex = code.length;
    const part = templatePart.exec(text)?.[0] ?? text.slice(code.length);
    if (part.endsWith('${')) openBraces.push(0);
    onText(part, code.length);
    code += blank(part);
  };
  while (code.length < text.length) {
    token.lastIndex = code.length;
    let part = token.exec(text)?.[0] ?? '';
    const inner = openBraces.at(-1);
    if (part === '`' || (part === '}' && inner === 0)) {
      if (part === '}') openBraces.pop();
      code += ' ';
      skipTemplate();
      before = '`';
      continue;
    }
    const isComment = part.startsWith('//') || part.startsWith('/*');
    // After a value, a slash divides.
    if (part.startsWith('/') && part.length > 1 && !isComment && /^[\w$)\]`'"]/.test(before)) part = '/';
    if (inner !== undefined && part === '{') openBraces[openBraces.length - 1] = inner + 1;
    if (inner !== undefined && part === '}') openBraces[openBraces.length - 1] = inner - 1;
    const isRegExp = part.startsWith('/') && part.length > 1 && !isComment;
    if (isRegExp) onRegExp(part);
    if (/^['"]/.test(part)) onText(part, code.length);
    const isText = /^['"]/.test(part) || isRegExp || isComment;
    code += isText ? blank(part) : part;
    if (!isComment && part.trim() !== '')
      before = /^(return|typeof|case|in|of|void|await)$/.test(part) ? '' : part;
  }
  return code;
}

// ---- Imports

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** Only types come in: nothing of it is left when the code runs. */
  readonly typeOnly: boolean;
  readonly dynamic: boolean;
}

const importStatement =
  /\b(?:import|export)\s+(type\s+)?(?:[\w$]+\s*,?\s*)?(\{[^}]*\}|\*(?:\s+as\s+[\w$]+)?)?\s*from\s*'([^']+)'/g;
const importCall = /\bimport\(\s*'([^']+)'/g;
const bareImport = /\bimport\s+'([^']+)'/g;

export function importsOf(text: string): readonly Import[] {
  const code = codeOnly(text);
  const found = (pattern: RegExp, read: (match: RegExpExecArray) => Omit<Import, 'line'>): Import[] =>
    [...text.matchAll(pattern)]
      .filter((match) => code[match.index] !== ' ')
      .map((match) => ({ ...read(match), line: lineOf(text, match.index) }));
  return [
    ...found(importStatement, ([, type, names = '', specifier = '']) => ({
      specifier,
      typeOnly: type !== undefined || hasOnlyTypes(names),
      dynamic: false,
    })),
    ...found(importCall, ([, specifier = '']) => ({ specifier, typeOnly: false, dynamic: true })),
    ...found(bareImport, ([, specifier = '']) => ({ specifier, typeOnly: false, dynamic: false })),
  ];
}

function hasOnlyTypes(names: string): boolean {
  const each = names
    .replace(/[{}]/g, '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  return names.startsWith('{') && each.length > 0 && each.every((name) => name.startsWith('type '));
}

/** Where an import of our own leads, relative to the repository; null: Node's or a package's. */
export function resolveImport(from: string, specifier: string): string | null {
  if (specifier.startsWith('.')) return join(from, '..', specifier);
  const [, name, subpath] = /^@muster\/(\w+)(?:\/(.+))?$/.exec(specifier) ?? [];
  return name === undefined ? null : `packages/${name}/src/${subpath ?? 'index'}.ts`;
}
