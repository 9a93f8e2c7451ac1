/**
 * Reads what an agent sends within the bounds of `table.ts`. The bytes are looked over first, without building anything, so
 * that a message of a million empty parts costs no more than finding the first part too many.
 */
import { MusterError } from '@muster/common/errors';
import { type MessageType, messageToObject, messageType, WireReader } from '@muster/common/wire/messageTypes';
import { type Bound, bounds, fieldsMax, messageBytesMax, printed } from './table.ts';

/** What a handler gets in the place of a message that is refused. */
export class RefusedMessage {
  readonly error: MusterError;

  constructor(error: MusterError) {
    this.error = error;
  }
}

/** @throws {MusterError} for a message that is refused */
export function taken<Message>(message: Message): Message {
  if (message instanceof RefusedMessage) throw message.error;
  return message;
}

/** Numbers that JavaScript still counts by one. */
const integerMax = Number.MAX_SAFE_INTEGER;
/** Of measurements: nothing is larger, and sums of it are finite. */
const measureMax = 1e15;
/** Of what programs print: a loss that has exploded is still reported. */
const printedMax = 1e100;

/** By message: how many fields it had on the wire. */
const costs = new WeakMap<object, number>();

/** What it has cost to read it and costs to heed it: fields on the wire. */
export function readingCostOf(message: object): number {
  return costs.get(message) ?? 0;
}

/** @returns the message, or a `RefusedMessage` with the reason why it is not accepted; never throws */
export function readBounded(typeName: string, bytes: Uint8Array): object {
  try {
    const type = messageType(typeName);
    const bytesMax = messageBytesMax[typeName] ?? 0;
    if (bytes.length > bytesMax) throw tooMuch(`${typeName} of ${bytes.length} bytes`, bytesMax);
    const left = { fields: fieldsMax };
    look(type, WireReader.create(bytes), bytes.length, left);
    const message = messageToObject(type, type.decode(bytes));
    cut(type, message);
    costs.set(message, fieldsMax - left.fields);
    return message;
  } catch (error) {
    if (error instanceof MusterError) return new RefusedMessage(error);
    return new RefusedMessage(
      new MusterError('invalid', `this is not a valid ${typeName}`, { cause: error }),
    );
  }
}

function tooMuch(what: string, max: number): MusterError {
  return new MusterError('resource_exhausted', `${what}: ${max} at most`);
}

/** Counts, and measures what is refused beyond its bound. */
function look(type: MessageType, reader: WireReader, end: number, left: { fields: number }): void {
  const counts = new Map<number, number>();
  while (reader.pos < end) {
    left.fields -= 1;
    if (left.fields < 0) throw tooMuch(`the fields of ${type.name}`, fieldsMax);
    const tag = reader.uint32();
    const wireType = tag & 7;
    // Groups nest without bound, and nobody has sent one for twenty years.
    if (wireType === 3 || wireType === 4) throw new MusterError('invalid', `${type.name} has a group`);
    const field = type.fieldsById[tag >>> 3];
    if (field !== undefined) {
      const count = (counts.get(field.id) ?? 0) + 1;
      counts.set(field.id, count);
      const bound = bounds[type.name]?.[field.name];
      const max = field.repeated || field.map ? (bound?.max ?? 0) : 1;
      if (count > max) throw tooMuch(`${type.name}.${field.name}`, max);
      if (wireType === 2) {
        const length = reader.uint32();
        const fieldEnd = reader.pos + length;
        if (fieldEnd > end) throw new MusterError('invalid', `${type.name}.${field.name} is cut short`);
        const isText = !field.repeated && !field.map && (field.type === 'string' || field.type === 'bytes');
        // A character takes four bytes at most.
        const bytesMax = field.type === 'bytes' ? (bound?.max ?? 0) : 4 * (bound?.max ?? 0);
        if (isText && bound?.over === 'refuse' && length > bytesMax)
          throw tooMuch(`the length of ${type.name}.${field.name}`, bound.max);
        const inner = field.map ? null : field.resolve().resolvedType;
        if (inner !== null && 'fieldsById' in inner) look(inner, reader, fieldEnd, left);
        reader.pos = fieldEnd;
        continue;
      }
    }
    reader.skipType(wireType);
  }
  if (reader.pos !== end) throw new MusterError('invalid', `${type.name} is cut short`);
}

/** Brings every value within its bound, in place. */
function cut(type: MessageType, message: Record<string, unknown>): void {
  for (const field of type.fieldsArray) {
    const value = message[field.name];
    if (value === undefined || value === null) continue;
    const bound = bounds[type.name]?.[field.name];
    const inner = field.map ? null : field.resolve().resolvedType;
    if (inner !== null && 'fieldsById' in inner) {
      for (const each of Array.isArray(value) ? value : [value]) cut(inner, each as Record<string, unknown>);
    } else if (field.map) {
      message[field.name] = boundedMap(value as Record<string, unknown>, bound);
    } else if (Array.isArray(value)) {
      message[field.name] = value.map((each) =>
        typeof each === 'string' ? shortened(each, bound?.each ?? 0) : each,
      );
    } else if (typeof value === 'string' && inner === null) {
      message[field.name] = boundedText(`${type.name}.${field.name}`, value, bound);
    } else if (typeof value === 'number') {
      setNumber(message, field.name, value, field.type, printed.has(type.name) ? printedMax : measureMax);
    }
  }
}

function boundedText(name: string, value: string, bound: Bound | undefined): string {
  const { max = 0, over = 'refuse' } = bound ?? {};
  if (over === 'refuse' && value.length > max) throw tooMuch(`the length of ${name}`, max);
  return shortened(value, max);
}

/** A text of its own: what is cut from a string keeps all of that string in memory for as long as it is kept itself. */
function shortened(value: string, max: number): string {
  return value.length <= max ? value : Buffer.from(`${value.slice(0, max - 1)}…`).toString();
}

/** Values that are not finite are omitted, as are values that could not be read. */
function boundedMap(
  value: Readonly<Record<string, unknown>>,
  bound: Bound | undefined,
): Record<string, unknown> {
  const each = bound?.each ?? 0;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]): [string, unknown][] => {
      if (typeof item === 'string') return [[shortened(key, each), shortened(item, each)]];
      return isWithin(item, printedMax) ? [[shortened(key, each), item]] : [];
    }),
  );
}

function setNumber(
  message: Record<string, unknown>,
  name: string,
  value: number,
  type: string,
  max: number,
): void {
  if (type === 'double' || type === 'float') {
    if (!isWithin(value, max)) message[name] = undefined;
  } else if (type.endsWith('64')) {
    message[name] = Math.max(0, Math.min(integerMax, value));
  }
}

function isWithin(value: unknown, max: number): boolean {
  return typeof value === 'number' && Math.abs(value) <= max;
}
