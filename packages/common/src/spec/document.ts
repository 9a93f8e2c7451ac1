/**
 * The text of a job file as a plain value that remembers where each part was written. JSON is YAML, so one parser serves
 * both. Everything a spec has no use for is refused before it can cost or surprise: aliases, anchors, tags, directives,
 * several documents, control characters, deep nesting, duplicate keys.
 */
import { Composer, type CST, isAlias, isMap, isScalar, isSeq, LineCounter, Parser, type Scalar } from 'yaml';
import { specPlaces } from './fields.ts';
import { specBytesMax, specDepthMax } from './limits.ts';
import { quote, type SpecPath } from './path.ts';
import type { Finding, Origin, PlacedFinding } from './problems.ts';
import { explainYamlError } from './yamlErrors.ts';

export interface SpecDocument {
  /** Mappings have no prototype, so that a key such as `__proto__` is a key like any other. */
  readonly value: Readonly<Record<string, unknown>>;
  /** What a job file may not hold, although the rest of it can be read: aliases, tags, duplicate keys. */
  readonly findings: readonly PlacedFinding[];
  /** Where a key or its value was written; what is not there is placed at what it is missing from. */
  originOf(path: SpecPath, at: 'key' | 'value'): Origin;
}

export type DocumentResult =
  | { readonly ok: true; readonly document: SpecDocument }
  | { readonly ok: false; readonly findings: readonly PlacedFinding[] };

/** What a file holds, for its readers. */
interface FileKind {
  /** Where the settings of the job are in it. */
  readonly jobAt: SpecPath;
  readonly expected: string;
}

const jobFile: FileKind = { jobAt: [], expected: 'job settings, such as command: [torchrun, train.py]' };

/**
 * Reads YAML or JSON text. It fails only where the text is not understood, so that nothing is known of its content.
 * @param kind of a file that is no job file
 */
export function readSpecDocument(text: string, kind: FileKind = jobFile): DocumentResult {
  const unfit = unfitText(text);
  if (unfit) return { ok: false, findings: [unfit] };
  return new DocumentReader(withoutByteOrderMark(text), kind).read();
}

/** Problems that forbid even to parse. */
function unfitText(text: string): PlacedFinding | null {
  const bytes = text.length > specBytesMax ? text.length : Buffer.byteLength(text);
  if (bytes > specBytesMax) {
    const message = `larger than ${specBytesMax / 1024} KB`;
    return {
      finding: whole(message, 'a job spec; data belongs into files that the job reads'),
      origin: start,
    };
  }
  const foreign = /(?![\t\n\r\u0085])\p{Cc}|\ufffd/u.exec(text);
  if (foreign) {
    const before = text.slice(0, foreign.index);
    const line = before.split('\n').length;
    const origin = { line, column: foreign.index - before.lastIndexOf('\n'), flag: null };
    return {
      finding: whole(
        'not a text file: a control character or a byte that is not UTF-8',
        'YAML or JSON in UTF-8',
      ),
      origin,
    };
  }
  return null;
}

function withoutByteOrderMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/**
 * The parser makes an error for each fault of a text. A broken text has thousands, and to capture their stacks, which
 * nobody reads, takes most of the time.
 */
function withoutStacks<T>(parse: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parse();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const start: Origin = { line: 1, column: 1, flag: null };

function whole(message: string, expected: string): Finding {
  return { path: [], at: 'value', message, expected, suggestion: null };
}

function refused(path: SpecPath, what: string): Finding {
  return {
    path,
    at: 'value',
    message: what,
    expected: 'the value alone; quotes if it is text',
    suggestion: null,
  };
}

interface Offsets {
  readonly key: number;
  readonly value: number;
}

class DocumentReader {
  private readonly text: string;
  private readonly kind: FileKind;
  private readonly lines = new LineCounter();
  private readonly offsets = new Map<string, Offsets>();
  private readonly findings: PlacedFinding[] = [];
  private readonly reportedLines = new Set<number | null>();

  constructor(text: string, kind: FileKind) {
    this.text = text;
    this.kind = kind;
  }

  read(): DocumentResult {
    const tokens = withoutStacks(() => [...new Parser(this.lines.addNewLine).parse(this.text)]);
    this.refuseUnwantedTokens(tokens);
    if (this.findings.length > 0) return this.refusal();

    const composer = new Composer({ version: '1.2', schema: 'core', stringKeys: true, uniqueKeys: false });
    const documents = withoutStacks(() => [...composer.compose(tokens)]);
    const [document, second] = documents;
    // A job file may begin so, too: to YAML this is a comment.
    if (this.text.startsWith('#!') && !isMap(document?.contents)) {
      this.report(0, whole('a script', 'job settings; to run the script: muster submit -- ./SCRIPT'));
      return this.refusal();
    }
    for (const error of documents.flatMap(({ errors }) => errors)) {
      const { problem, expected } = explainYamlError(error.code, error.message);
      this.report(error.pos[0], whole(problem, expected));
    }
    if (this.findings.length > 0) return this.refusal();
    if (second) {
      this.report(second.range[0], whole('a second document', 'one job per file'));
      return this.refusal();
    }
    const root = document?.contents;
    if (!isMap(root)) {
      const message =
        root && !(isScalar(root) && root.value === null) ? 'not a mapping of settings' : 'empty';
      this.report(root?.range?.[0] ?? 0, whole(message, this.kind.expected));
      return this.refusal();
    }
    const value = this.plain(root, []) as Readonly<Record<string, unknown>>;
    return {
      ok: true,
      document: { value, findings: this.findings, originOf: (path, at) => this.originOf(path, at) },
    };
  }

  /** Iterative, and before the composer runs: that one is recursive, and `[[[[…` would overflow its stack. */
  private refuseUnwantedTokens(tokens: readonly CST.Token[]): void {
    const open = tokens.map((token): { token: CST.Token; depth: number } => ({ token, depth: 0 }));
    for (let entry = open.pop(); entry; entry = open.pop()) {
      const { token, depth } = entry;
      if (depth > specDepthMax) {
        this.report(token.offset, whole('nested too deeply', `at most ${specDepthMax} levels`));
        return;
      }
      if (token.type === 'directive') {
        this.report(token.offset, whole('a YAML directive', 'no line that begins with "%"'));
      } else if (token.type === 'document' && token.value) {
        open.push({ token: token.value, depth: isCollection(token.value) ? 1 : 0 });
      } else if (isCollection(token)) {
        const children = token.items
          .flatMap(({ key, value }) => [key, value])
          .filter((child) => child != null);
        for (const child of children)
          open.push({ token: child, depth: isCollection(child) ? depth + 1 : depth });
      }
    }
  }

  /** Recursion is bounded: deeper nesting has been refused. */
  private plain(node: unknown, path: SpecPath): unknown {
    if (isAlias(node)) {
      this.report(offsetOf(node) ?? 0, refused(path, `an alias, ${quote(`*${node.source}`, 60)}`));
      return null;
    }
    this.refuseProperties(node, path);
    if (isMap(node)) return this.plainMapping(node.items, path);
    if (isSeq(node)) {
      return node.items.map((item, index) => {
        const offset = offsetOf(item) ?? offsetOf(node) ?? 0;
        this.offsets.set(JSON.stringify([...path, index]), { key: offset, value: offset });
        return this.plain(item, [...path, index]);
      });
    }
    return isScalar(node) ? scalarValue(node, pathInJob(path, this.kind.jobAt)) : null;
  }

  private plainMapping(pairs: readonly { key: unknown; value: unknown }[], path: SpecPath): unknown {
    const mapping: Record<string, unknown> = Object.create(null);
    for (const { key, value } of pairs) {
      if (isAlias(key)) this.plain(key, path);
      if (!isScalar(key)) continue;
      this.refuseProperties(key, path);
      const name = typeof key.value === 'string' ? key.value : '';
      const inner = [...path, name];
      const offset = offsetOf(key) ?? 0;
      const earlier = this.offsets.get(JSON.stringify(inner));
      if (earlier) {
        const first = this.lines.linePos(earlier.key).line;
        const message = `given twice, first on line ${first}`;
        this.report(offset, { path: inner, at: 'key', message, expected: 'each key once', suggestion: null });
        continue;
      }
      this.offsets.set(JSON.stringify(inner), { key: offset, value: offsetOf(value) ?? offset });
      mapping[name] = this.plain(value, inner);
    }
    return mapping;
  }

  /** Anchors and tags: nothing a job needs, and the one is half an alias, the other makes values JSON does not have. */
  private refuseProperties(node: unknown, path: SpecPath): void {
    if (!isMap(node) && !isSeq(node) && !isScalar(node)) return;
    const { anchor, tag } = node;
    const offset = offsetOf(node) ?? 0;
    if (anchor !== undefined) this.report(offset, refused(path, `an anchor, ${quote(`&${anchor}`, 60)}`));
    if (tag !== undefined && !plainTags.has(tag))
      this.report(offset, refused(path, `a YAML tag, ${quote(shortTag(tag), 60)}`));
  }

  private originOf(path: SpecPath, at: 'key' | 'value'): Origin {
    const found = this.offsets.get(JSON.stringify(path));
    if (found) return this.place(at === 'key' ? found.key : found.value);
    if (path.length === 0) return start;
    return this.originOf(path.slice(0, -1), 'key');
  }

  private report(offset: number, finding: Finding): void {
    const origin = this.place(offset);
    // One slip makes the parser stumble several times on a line; the first message is the useful one.
    if (finding.path.length === 0 && this.reportedLines.has(origin.line)) return;
    this.reportedLines.add(origin.line);
    this.findings.push({ finding, origin });
  }

  private place(offset: number): Origin {
    const { line, col } = this.lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1), flag: null };
  }

  private refusal(): DocumentResult {
    return { ok: false, findings: this.findings };
  }
}

type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection;

function isCollection(token: CST.Token): token is Collection {
  return token.type === 'block-map' || token.type === 'block-seq' || token.type === 'flow-collection';
}

function offsetOf(node: unknown): number | null {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? (node.range?.[0] ?? null) : null;
}

const tagPrefix = 'tag:yaml.org,2002:';
/** Tags that say no more than the form of the value does. */
const plainTags = new Set([
  '!',
  ...['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => tagPrefix + name),
]);

function shortTag(tag: string): string {
  return tag.startsWith(tagPrefix) ? `!!${tag.slice(tagPrefix.length)}` : tag;
}

/** @returns empty: it is outside of the settings of the job */
function pathInJob(path: SpecPath, jobAt: SpecPath): SpecPath {
  return jobAt.every((part, index) => path[index] === part) ? path.slice(jobAt.length) : [];
}

/** Settings that are text, or hold it, whatever their values look like. */
const textSettings: ReadonlySet<string> = new Set(
  specPlaces.filter(({ field }) => field.isText).map(({ path }) => path.join('.')),
);

/**
 * Text settings are taken as they were written: `VERSION: 1.10` means "1.10" and not the number 1.1, a commit such as
 * `1e10` is not 10000000000. An empty value stays empty, and is reported by the schema.
 */
function scalarValue(node: Scalar, path: SpecPath): unknown {
  const isText = textSettings.has(path.join('.')) || textSettings.has(path.slice(0, -1).join('.'));
  const hasOtherType = typeof node.value === 'number' || typeof node.value === 'boolean';
  return isText && hasOtherType && node.source !== undefined ? node.source : node.value;
}
