/** JSON of a checkpoint, within bounds of memory. */
import { CorruptFile, OpaqueFile, type OpenedFile, readPart } from './openedFile.ts';

/** Room for the log history of a long run; parsed, it takes several times as much. */
const jsonBytesMax = 32 * 1024 * 1024;
const depthMax = 64;

/**
 * @returns what it holds; undefined: it is too long to be parsed, and ends as it begins
 * @throws {CorruptFile} when it is not JSON {OpaqueFile} when it is nested too deeply
 */
export function readJson(file: OpenedFile): unknown {
  if (file.bytes <= jsonBytesMax) return parseJson(readPart(file, 0, file.bytes));
  const edge = 64;
  const first = readPart(file, 0, edge).toString('latin1').trimStart()[0] ?? '';
  const last =
    readPart(file, file.bytes - edge, edge)
      .toString('latin1')
      .trimEnd()
      .at(-1) ?? '';
  if (!['{}', '[]'].includes(first + last))
    throw new CorruptFile('is not JSON: it does not end as it begins');
  return undefined;
}

/** @throws {CorruptFile} {OpaqueFile} */
export function parseJson(bytes: Buffer): unknown {
  // The parser keeps a note per level: some megabytes of `[` would take gigabytes of memory.
  if (isDeeperThan(bytes, depthMax)) throw new OpaqueFile(`is JSON of more than ${depthMax} levels`);
  const text = bytes.toString('utf8');
  const value = parsed(text) ?? parsed(withoutNumbersOfPython(text)) ?? parsedLines(text);
  if (value === null) throw new CorruptFile('is not JSON: it is damaged or was cut off');
  return value.json;
}

/** @returns null: it is not JSON */
function parsed(text: string): { readonly json: unknown } | null {
  try {
    return { json: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** Python writes a loss that is not a number as `NaN`, which it reads again and nobody else does. */
function withoutNumbersOfPython(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const outsideEnd = quote === -1 ? text.length : quote;
    parts.push(text.slice(at, outsideEnd).replace(/-?\bInfinity\b|\bNaN\b/g, 'null'));
    at = quote === -1 ? text.length : endOfText(text, quote);
    parts.push(text.slice(outsideEnd, at));
  }
  return parts.join('');
}

/** @returns behind the quote that ends what begins with the one at `from`, or behind all where none does */
function endOfText(text: string, from: number): number {
  for (let quote = text.indexOf('"', from + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** Logs are often one value to a line under the same suffix. */
function parsedLines(text: string): { readonly json: unknown } | null {
  const lines = withoutNumbersOfPython(text)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parsed);
  return lines.length > 1 && lines.every((line) => line !== null) ? { json: undefined } : null;
}

function isDeeperThan(bytes: Buffer, levels: number): boolean {
  const [quote, backslash, brace, bracket, braceEnd, bracketEnd] = Buffer.from('"\\{[}]');
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isInText && byte === backslash) at += 1;
    else if (byte === quote) isInText = !isInText;
    else if (!isInText && (byte === brace || byte === bracket)) depth += 1;
    else if (!isInText && (byte === braceEnd || byte === bracketEnd)) depth -= 1;
    if (depth > levels) return true;
  }
  return false;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns null: it is no number of steps */
export function asStep(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : null;
}
