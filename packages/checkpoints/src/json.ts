/** JSON of a checkpoint, within bounds of memory. */
import { CorruptFile, OpaqueFile, type OpenedFile, readPart } from './openedFile.ts';

/** Room for the log history of a long run; parsed, it takes several times as much. */
export const jsonBytesMax = 32 * 1024 * 1024;
const depthMax = 64;

/**
 * @returns what it holds; undefined: it is too long to be parsed, and ends as it begins
 * @throws {CorruptFile} when it is no JSON {OpaqueFile} when it is nested too deeply
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
  if (!['{}', '[]'].includes(first + last)) throw new CorruptFile('is no JSON: it does not end as it begins');
  return undefined;
}

/** @throws {CorruptFile} {OpaqueFile} */
export function parseJson(bytes: Buffer): unknown {
  // The parser keeps a note per level: some megabytes of `[` would take gigabytes of memory.
  if (isDeeperThan(bytes, depthMax)) throw new OpaqueFile(`is JSON of more than ${depthMax} levels`);
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new CorruptFile('is no JSON: it is damaged or was cut off');
  }
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
