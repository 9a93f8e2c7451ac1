/**
 * The safetensors format: the length of a header in 8 bytes, the header as JSON, then the tensors one after the other. It
 * keeps no sums: damage inside of a tensor cannot be seen, every other damage can.
 */
import { asStep, isRecord, parseJson } from './json.ts';
import { CorruptFile, OpaqueFile, type OpenedFile, pieceOf, readPart } from './openedFile.ts';

export interface SafetensorsFile {
  readonly tensors: ReadonlySet<string>;
  /** From its metadata, where the program put one there. */
  readonly step: number | null;
}

/** The library refuses more. */
const headerBytesAllowed = 100_000_000;
/** What is read: parsed, it takes several times as much memory. The header of a model of 10,000 tensors has 1 MB. */
const headerBytesMax = 32 * 1024 * 1024;
const lengthBytes = 8;
const pageBytes = 4_096;
/** Zeros that are worth a doubt. */
const doubtedBytes = 1024 * 1024;
/** How far back their beginning is looked for: read once, and only where there are any. */
const zerosLookedAt = 256 * 1024 * 1024;
/** The last value before them may itself end in zeros. */
const valueBytesMax = 16;

const bitsOf: Readonly<Record<string, number>> = {
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  BOOL: 8,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2FNUZ: 8,
  U16: 16,
  I16: 16,
  F16: 16,
  BF16: 16,
  U32: 32,
  I32: 32,
  F32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
  C64: 64,
};

/**
 * @param head at least the first 9 bytes, where there are as many
 * @returns whether it begins as safetensors do, also where the rest of the header is missing
 */
export function beginsLikeSafetensors(head: Buffer): boolean {
  if (head.length <= lengthBytes) return false;
  const first = head.toString('latin1', lengthBytes).trimStart()[0];
  return head.readBigUInt64LE(0) <= BigInt(headerBytesAllowed) && first === '{';
}

/** @throws {CorruptFile} {OpaqueFile} */
export function examineSafetensors(file: OpenedFile): SafetensorsFile {
  const start = readPart(file, 0, lengthBytes);
  if (start.length < lengthBytes) throw new CorruptFile(`was cut off: it has ${file.bytes} bytes`);
  const headerBytes = start.readBigUInt64LE(0);
  if (headerBytes > BigInt(headerBytesAllowed))
    throw new CorruptFile(
      `is damaged: its header claims ${headerBytes} bytes, and the format allows ${headerBytesAllowed}`,
    );
  if (headerBytes > BigInt(file.bytes - lengthBytes))
    throw new CorruptFile(
      `was cut off: its header claims ${headerBytes} bytes, and it has ${file.bytes} in all`,
    );
  if (headerBytes > BigInt(headerBytesMax))
    throw new OpaqueFile(`has a header of ${headerBytes} bytes, more than is read`);
  const text = readPart(file, lengthBytes, Number(headerBytes));
  const dataAt = lengthBytes + text.length;
  const { begins, ...described } = examineHeader(parseHeader(text), file.bytes - dataAt);
  requireWrittenEnd(pieceOf(file, dataAt, file.bytes), begins);
  return described;
}

function parseHeader(text: Buffer): Readonly<Record<string, unknown>> {
  try {
    const header = parseJson(text);
    if (isRecord(header)) return header;
  } catch (error) {
    if (error instanceof OpaqueFile) throw new CorruptFile('is damaged: its header is nested');
  }
  throw new CorruptFile('is damaged: its header is not JSON');
}

interface Tensor {
  readonly name: string;
  readonly begin: number;
  readonly end: number;
}

/** @param dataBytes what follows the header @throws {CorruptFile} {OpaqueFile} */
function examineHeader(
  header: Readonly<Record<string, unknown>>,
  dataBytes: number,
): SafetensorsFile & { readonly begins: ReadonlySet<number> } {
  const { __metadata__: metadata, ...described } = header;
  const tensors = Object.entries(described).map(([name, value]) => readTensor(name, value));
  let end = 0;
  for (const tensor of tensors.toSorted((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (tensor.begin < end) throw new CorruptFile(`is damaged: ${tensor.name} overlaps another tensor`);
    if (tensor.begin > end)
      throw new CorruptFile(`is damaged: nothing fills the bytes before ${tensor.name}`);
    end = tensor.end;
  }
  if (end > dataBytes)
    throw new CorruptFile(`was cut off: its tensors need ${end} bytes, and ${dataBytes} are there`);
  if (end < dataBytes) throw new CorruptFile(`is damaged: ${dataBytes - end} bytes follow its last tensor`);
  const steps = isRecord(metadata) ? [metadata['step'], metadata['global_step']] : [];
  return {
    tensors: new Set(tensors.map(({ name }) => name)),
    step: steps.map(asStep).find((step) => step !== null) ?? null,
    begins: new Set(tensors.map(({ begin }) => begin)),
  };
}

/**
 * A crash may leave the size of a file and not its last contents: zeros, from the beginning of a page on. Tensors that are
 * nothing but zeros look the same, unless they are the last ones and begin elsewhere: those are believed.
 * @param begins of its tensors
 * @throws {OpaqueFile}
 */
function requireWrittenEnd(data: OpenedFile, begins: ReadonlySet<number>): void {
  if (data.bytes < pageBytes || zerosFrom(data, Math.max(0, data.bytes - doubtedBytes)) > 0) return;
  const zeros = zerosFrom(data, Math.max(0, data.bytes - zerosLookedAt));
  const isWholeTensors =
    zeros > 0 &&
    [...Array(valueBytesMax).keys()].some(
      (more) => begins.has(zeros + more) && (data.start + zeros + more) % pageBytes !== 0,
    );
  if (!isWholeTensors) throw new OpaqueFile('ends in zeros, which is what a crash leaves behind');
}

/**
 * @param from where to stop looking
 * @returns where the zeros at its end begin; 0: there is nothing else behind `from`
 */
function zerosFrom(data: OpenedFile, from: number): number {
  for (let end = data.bytes; end > from; ) {
    const start = Math.max(from, end - doubtedBytes);
    const last = readPart(data, start, end - start).findLastIndex((byte) => byte !== 0);
    if (last !== -1) return start + last + 1;
    end = start;
  }
  return 0;
}

function readTensor(name: string, value: unknown): Tensor {
  const { dtype, shape, data_offsets: offsets } = isRecord(value) ? value : {};
  const isShape = Array.isArray(shape) && shape.every(isCount);
  if (typeof dtype !== 'string' || !isShape || !Array.isArray(offsets) || offsets.length !== 2)
    throw new CorruptFile(`is damaged: ${name} is not described as a tensor`);
  const [begin, end]: readonly unknown[] = offsets;
  if (!isCount(begin) || !isCount(end) || begin > end)
    throw new CorruptFile(`is damaged: ${name} has impossible offsets`);
  const bits = bitsOf[dtype];
  if (bits === undefined) throw new OpaqueFile(`holds ${name} in the type ${dtype}, which is unknown`);
  const elements = shape.reduce((product: number, each: number) => product * each, 1);
  if (elements * bits !== (end - begin) * 8)
    throw new CorruptFile(`is damaged: ${name} has ${end - begin} bytes, which is not what its shape takes`);
  return { name, begin, end };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
