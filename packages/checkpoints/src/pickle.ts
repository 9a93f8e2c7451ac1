/**
 * Reads pickles without loading them: opcode by opcode, following texts and numbers and nothing else. No class is looked up,
 * no function runs, and what a pickle describes is never built. Python's protocols 0 to 5.
 */
import { CorruptFile, OpaqueFile } from './openedFile.ts';

/** undefined: something else than a text, a number or None. */
type Value = string | number | null | undefined;

/** What follows an opcode: `count` bytes, a length in `lengthBytes` bytes and then that many bytes, or `count` lines. */
type Operand =
  | { readonly kind: 'bytes'; readonly count: number }
  | { readonly kind: 'counted'; readonly lengthBytes: number }
  | { readonly kind: 'lines'; readonly count: number };

/** @param operand what follows the opcode */
type Effect = (reader: PickleReader, operand: Buffer) => void;

interface Opcode {
  readonly operand: Operand;
  readonly act: Effect;
}

/** Called with what is put into a dictionary at once, by key. */
export type OnItems = (items: ReadonlyMap<string, Value>) => void;

const protocolMax = 5;
/** STOP, the last byte in every protocol. */
export const pickleEnd = 0x2e;
/** Longer ones are no names. */
const textBytesMax = 4_096;

/**
 * @param bytes a pickle that ends where they end
 * @throws {CorruptFile} when Python could not load it either {OpaqueFile} when it has a protocol that is not known
 */
export function readPickle(bytes: Buffer, onItems: OnItems): void {
  new PickleReader(bytes, onItems).run();
}

class PickleReader {
  readonly stack: Value[] = [];
  /** Heights of the stack. */
  readonly marks: number[] = [];
  readonly onItems: OnItems;
  hasStopped = false;
  private readonly bytes: Buffer;
  /** Of the values that are of interest. */
  private readonly memo = new Map<number, Value>();
  private memoized = 0;
  private at = 0;

  constructor(bytes: Buffer, onItems: OnItems) {
    this.bytes = bytes;
    this.onItems = onItems;
  }

  run(): void {
    while (!this.hasStopped) {
      const opcode = opcodes.get(this.take(1)[0] ?? 0);
      if (opcode === undefined) throw damaged();
      opcode.act(this, this.operand(opcode.operand));
    }
    if (this.at < this.bytes.length)
      throw new CorruptFile(`is damaged: ${this.bytes.length - this.at} bytes follow its pickle`);
  }

  pop(): Value {
    const floor = this.marks.at(-1) ?? 0;
    if (this.stack.length <= floor) throw damaged();
    return this.stack.pop();
  }

  /** @returns what was put onto the stack since the last mark, which is taken away */
  popToMark(): readonly Value[] {
    const height = this.marks.pop();
    if (height === undefined) throw damaged();
    return this.stack.splice(height);
  }

  memoize(index: number | null): void {
    const key = index ?? this.memoized;
    const value = this.stack.at(-1);
    if (this.stack.length === 0) throw damaged();
    if (value === undefined) this.memo.delete(key);
    else this.memo.set(key, value);
    this.memoized = Math.max(this.memoized, key + 1);
  }

  recall(index: number): void {
    if (index >= this.memoized) throw damaged();
    this.stack.push(this.memo.get(index));
  }

  private operand(operand: Operand): Buffer {
    if (operand.kind === 'bytes') return this.take(operand.count);
    if (operand.kind === 'counted') return this.take(unsigned(this.take(operand.lengthBytes)));
    const from = this.at;
    for (let line = 0; line < operand.count; line += 1) {
      const end = this.bytes.indexOf(0x0a, this.at);
      if (end === -1) throw damaged();
      this.at = end + 1;
    }
    return this.bytes.subarray(from, Math.max(from, this.at - 1));
  }

  private take(count: number): Buffer {
    if (count > this.bytes.length - this.at) throw damaged();
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
}

function damaged(): CorruptFile {
  return new CorruptFile('is damaged: it is not a complete pickle');
}

/** Up to 2^53: more is no length of anything that is there. */
function unsigned(bytes: Buffer): number {
  return bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
}

function signed(bytes: Buffer): number | undefined {
  if (bytes.length > 8) return undefined;
  const isNegative = ((bytes.at(-1) ?? 0) & 0x80) !== 0;
  const value = unsigned(bytes) - (isNegative ? 2 ** (8 * bytes.length) : 0);
  return Number.isSafeInteger(value) ? value : undefined;
}

function lineNumber(line: Buffer): number {
  const number = Number(line.toString('latin1'));
  if (!Number.isSafeInteger(number)) throw damaged();
  return number;
}

const push =
  (value: (operand: Buffer) => Value): Effect =>
  (reader, operand) =>
    void reader.stack.push(value(operand));
const unknownValue = push(() => undefined);
const text = push((operand) => (operand.length <= textBytesMax ? operand.toString('utf8') : undefined));

/** Takes so many values away, and puts there what nobody looks into. */
const combine =
  (count: number): Effect =>
  (reader) => {
    for (let index = 0; index < count; index += 1) reader.pop();
    reader.stack.push(undefined);
  };

/** @param below values that are needed under the mark and stay there; 0: a new value takes the place of all */
const combineMarked =
  (below: 0 | 1): Effect =>
  (reader) => {
    reader.popToMark();
    if (below === 0) reader.stack.push(undefined);
    else requireTop(reader);
  };

function requireTop(reader: PickleReader): void {
  reader.stack.push(reader.pop());
}

const setItems: Effect = (reader) => {
  const values = reader.popToMark();
  requireTop(reader);
  if (values.length % 2 !== 0) throw damaged();
  const items = new Map<string, Value>();
  for (let at = 0; at < values.length; at += 2) {
    const key = values[at];
    if (typeof key === 'string') items.set(key, values[at + 1]);
  }
  reader.onItems(items);
};

const nothing: Operand = { kind: 'bytes', count: 0 };
const bytes = (count: number): Operand => ({ kind: 'bytes', count });
const counted = (lengthBytes: number): Operand => ({ kind: 'counted', lengthBytes });
const lines = (count: number): Operand => ({ kind: 'lines', count });

const opcodes: ReadonlyMap<number, Opcode> = new Map(
  (
    [
      // Frame and end.
      [0x80, bytes(1), (_, [protocol = 0]) => requireProtocol(protocol)],
      [0x95, bytes(8), () => {}],
      ['.', nothing, stop],
      // Stack and memo.
      ['(', nothing, ({ marks, stack }) => void marks.push(stack.length)],
      ['0', nothing, popOrMark],
      ['1', nothing, (reader) => void reader.popToMark()],
      ['2', nothing, duplicate],
      [0x94, nothing, (reader) => reader.memoize(null)],
      ['p', lines(1), (reader, line) => reader.memoize(lineNumber(line))],
      ['q', bytes(1), (reader, operand) => reader.memoize(unsigned(operand))],
      ['r', bytes(4), (reader, operand) => reader.memoize(unsigned(operand))],
      ['g', lines(1), (reader, line) => reader.recall(lineNumber(line))],
      ['h', bytes(1), (reader, operand) => reader.recall(unsigned(operand))],
      ['j', bytes(4), (reader, operand) => reader.recall(unsigned(operand))],
      // Numbers and constants.
      ['N', nothing, push(() => null)],
      ['K', bytes(1), push(unsigned)],
      ['M', bytes(2), push(unsigned)],
      ['J', bytes(4), push(signed)],
      [0x8a, counted(1), push(signed)],
      [0x8b, counted(4), push(signed)],
      ...(['F', 'I', 'L', 'S', 'P', 'V'] as const).map((code) => [code, lines(1), unknownValue] as const),
      ['G', bytes(8), unknownValue],
      [0x88, nothing, unknownValue],
      [0x89, nothing, unknownValue],
      // Texts and bytes.
      [0x8c, counted(1), text],
      ['X', counted(4), text],
      [0x8d, counted(8), text],
      ['U', counted(1), unknownValue],
      ['T', counted(4), unknownValue],
      ['C', counted(1), unknownValue],
      ['B', counted(4), unknownValue],
      [0x8e, counted(8), unknownValue],
      [0x96, counted(8), unknownValue],
      [0x97, nothing, unknownValue],
      [0x98, nothing, combine(1)],
      // Tuples, lists, sets and dictionaries.
      [')', nothing, unknownValue],
      [0x85, nothing, combine(1)],
      [0x86, nothing, combine(2)],
      [0x87, nothing, combine(3)],
      ['t', nothing, combineMarked(0)],
      [']', nothing, unknownValue],
      ['l', nothing, combineMarked(0)],
      ['a', nothing, combine(2)],
      ['e', nothing, combineMarked(1)],
      [0x8f, nothing, unknownValue],
      [0x90, nothing, combineMarked(1)],
      [0x91, nothing, combineMarked(0)],
      ['}', nothing, unknownValue],
      ['d', nothing, combineMarked(0)],
      ['s', nothing, combine(3)],
      ['u', nothing, setItems],
      // Classes, and calls with their arguments: only the values on the stack are counted.
      ['c', lines(2), unknownValue],
      [0x93, nothing, combine(2)],
      [0x82, bytes(1), unknownValue],
      [0x83, bytes(2), unknownValue],
      [0x84, bytes(4), unknownValue],
      ['R', nothing, combine(2)],
      [0x81, nothing, combine(2)],
      [0x92, nothing, combine(3)],
      ['i', lines(2), combineMarked(0)],
      ['o', nothing, combineMarked(0)],
      ['Q', nothing, combine(1)],
      ['b', nothing, combine(2)],
    ] satisfies readonly (readonly [code: string | number, operand: Operand, act: Effect])[]
  ).map(([code, operand, act]) => [typeof code === 'string' ? code.charCodeAt(0) : code, { operand, act }]),
);

function requireProtocol(protocol: number): void {
  if (protocol > protocolMax) throw new OpaqueFile(`is a pickle of protocol ${protocol}, which is unknown`);
}

function stop(reader: PickleReader): void {
  reader.pop();
  reader.hasStopped = true;
}

function popOrMark(reader: PickleReader): void {
  if (reader.marks.at(-1) === reader.stack.length) reader.marks.pop();
  else reader.pop();
}

function duplicate(reader: PickleReader): void {
  const value = reader.pop();
  reader.stack.push(value, value);
}
