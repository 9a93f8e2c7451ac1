/** Keeps answers small enough for the context of a model. Pure. */
import { shortened } from '@muster/common/causeText';
import { MusterError } from '@muster/common/errors';

/** Of a whole answer, its text and its structured content together. */
export const answerBytesMax = 8 * 1024;

/** For the items of one page: the rest of an answer has what remains. */
export const listBytesMax = 6 * 1024;

export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

/**
 * As many items, from the first, as a page has room for. The first one is always among them, so that following cursors ends.
 */
export function firstFitting<Item>(items: readonly Item[], bytesMax = listBytesMax): readonly Item[] {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += jsonBytes(item) + 1;
    return bytes > bytesMax && index > 0;
  });
  return end === -1 ? items : items.slice(0, end);
}

/** One line, cut where it is longer. null stays null. */
export function brief(text: string, max?: number): string;
export function brief(text: string | null, max?: number): string | null;
export function brief(text: string | null, max = 300): string | null {
  return text === null ? null : shortened(text, max);
}

/** The entries of a mapping that a page has room for. */
export function briefEntries<Value>(
  map: Readonly<Record<string, Value>>,
  bytesMax: number,
): Readonly<Record<string, Value>> {
  return Object.fromEntries(firstFitting(Object.entries(map), bytesMax));
}

/** `2026-11-24T05:42:50Z`. null stays null. */
export function isoTime(ms: number): string;
export function isoTime(ms: number | null): string | null;
export function isoTime(ms: number | null): string | null {
  return ms === null ? null : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/**
 * Position in a list that a cursor stands for.
 * @throws {MusterError} `invalid`
 */
export function cursorPosition(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const position = /^\d{1,15}$/.test(cursor) ? Number(cursor) : null;
  if (position !== null) return position;
  throw new MusterError(
    'invalid',
    `cursor: got "${brief(cursor, 40)}"; expected the nextCursor of an earlier answer`,
  );
}

/** A page of a list that is in memory, and the cursor of the next one; null: this was the last. */
export function pageFrom<Item>(
  items: readonly Item[],
  { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
): { readonly page: readonly Item[]; readonly nextCursor: string | null } {
  const start = cursorPosition(cursor);
  const page = firstFitting(items.slice(start, start + limit));
  const end = start + page.length;
  return { page, nextCursor: end < items.length ? String(end) : null };
}
