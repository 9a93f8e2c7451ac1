/**
 * Decoders of stored JSON that may be of a newer version or changed by hand: what is not understood is omitted, and the rest
 * counts. Unlike zod they need hardly any memory.
 */
import { isMapping } from './spec/path.ts';

/** undefined: the value is not understood. */
export type Decoder<T> = (value: unknown) => T | undefined;

export const asText: Decoder<string> = (value) => (typeof value === 'string' ? value : undefined);
export const asBoolean: Decoder<boolean> = (value) => (typeof value === 'boolean' ? value : undefined);
/** Anything but true is false. */
export const isTrue: Decoder<boolean> = (value) => value === true;
/** A finite one. */
export const asNumber: Decoder<number> = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

export function asOneOf<const T extends string>(words: readonly T[]): Decoder<T> {
  return (value) => words.find((word) => word === value);
}

/** null stands for itself and for what is not understood. */
export function orNull<T>(decode: Decoder<T>): (value: unknown) => T | null {
  return (value) => decode(value) ?? null;
}

/** null stands for itself only. */
export function asNullable<T>(decode: Decoder<T>): Decoder<T | null> {
  return (value) => (value === null ? null : decode(value));
}

/** An object is not understood where one of its fields is not. Further fields are omitted. */
export function asObject<T extends object>(fields: { readonly [K in keyof T]: Decoder<T[K]> }): Decoder<T> {
  const decoders = Object.entries<Decoder<unknown>>(fields);
  return (value) => {
    if (!isMapping(value)) return undefined;
    const decoded = decoders.map(([key, decode]) => [key, decode(value[key])] as const);
    const isWhole = decoded.every(([, each]) => each !== undefined);
    return isWhole ? (Object.fromEntries(decoded) as T) : undefined;
  };
}

/** Items that are not understood are omitted; a value that is not a list becomes an empty one. */
export function asListOf<T>(decode: Decoder<T>): (value: unknown) => readonly T[] {
  return (value) => (Array.isArray(value) ? value.map(decode).filter((each) => each !== undefined) : []);
}

/** Values that are not understood are omitted; a value that is not a mapping becomes an empty one. */
export function asMapOf<T>(decode: Decoder<T>): (value: unknown) => ReadonlyMap<string, T> {
  return (value) => {
    const decoded = Object.entries(isMapping(value) ? value : {}).map(([key, each]) => [key, decode(each)]);
    return new Map(decoded.filter((pair): pair is [string, T] => pair[1] !== undefined));
  };
}
