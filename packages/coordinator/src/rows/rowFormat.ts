/**
 * How rows of metrics lie on disk: a file of frames, each with the rows of one task. Nothing else has to be remembered:
 * which rows the coordinator has of a task is what the last frame of that task says.
 *
 *     frame   u32 length of the body · u32 CRC-32 of the body · body
 *     body    u32 attempt · u32 node rank · f64 position · f64 base time · u16 rows · rows · omitted, if bit 15 of `u16 rows` is set
 *     row     u16 which values · i32 milliseconds since the base time · f64 each value, in the order of `trainingMetrics`
 *     end     a body without rows and omitted, whose base time is 0 where the task's rows end here and 1 where more were lost
 *     bucket  a row, then f64 first step · f64 min · f64 max · f64 mean · u32 rows · u32 of them not finite
 *     others  behind a row with bit 13: u16 which metrics are not finite numbers (the loss has a bit of its own)
 *     omitted f64 unread bytes · u16 which metrics · f64 values · f64 of them not finite, for each
 *
 * Little-endian. A frame that a crash has cut short fails its length or its CRC, and so does whatever was damaged.
 */
import { crc32 } from 'node:zlib';
import { type TrainingMetricName, type TrainingValues, trainingMetricNames } from '@muster/common/training';
import type { ValueCount, ValueCounts } from '@muster/common/valueCounts';

/** Several successive losses of training in one. */
export interface LossBucket {
  readonly rows: number;
  /** null: the program printed none. */
  readonly firstStep: number | null;
  /** null: none of the values is finite. */
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
}

export interface StoredRow {
  readonly atMs: number;
  /** Of a bucket: its last step, and the last loss that was finite. */
  readonly values: TrainingValues;
  /** Losses of training that are no finite numbers: 0 or 1, of a bucket as many as it has. */
  readonly notFinite: number;
  readonly bucket: LossBucket | null;
  /** Other metrics of the line that are not finite numbers. Absent: none. */
  readonly alsoNotFinite?: readonly TrainingMetricName[];
}

/** Values of a task that the rows of its file do not have. */
export interface Omitted {
  /** Dropped by the node because they came too fast, or by thinning here. */
  readonly values: ValueCounts;
  /** Output that the node never read for metrics; nobody knows what stood there. */
  readonly unreadBytes: number;
}

export const nothingOmitted: Omitted = { values: {}, unreadBytes: 0 };

export interface Frame {
  readonly attempt: number;
  readonly nodeRank: number;
  /** The coordinator has every row of the task up to this position of its output. */
  readonly position: number;
  readonly rows: readonly StoredRow[];
  /** Of the task, from its first row up to the end of this frame. Absent: as in the frame before. */
  readonly omitted?: Omitted;
  /** Present exactly in a frame without rows and `omitted`. */
  readonly end?: EndMark;
}

/** How the rows of a task end, as its agent says. `lost`: more followed, and the node no longer has them. */
export type EndMark = 'complete' | 'lost';

/** More would make frames too large to be looked at in one go. */
export const frameRowsMax = 512;

const headBytes = 8;
const bodyHeadBytes = 26;
const rowHeadBytes = 6;
const bucketBytes = 40;
const valueBytes = 8;
const maskBytes = 2;
/** No frame that was written here is longer. */
const bodyBytesMax =
  bodyHeadBytes +
  frameRowsMax * (rowHeadBytes + trainingMetricNames.length * valueBytes + bucketBytes + maskBytes) +
  omittedBytes(trainingMetricNames.length);

/** Of the number of rows. */
const omittedBit = 1 << 15;
const othersBit = 1 << 13;
const notFiniteBit = 1 << 14;
const bucketBit = 1 << 15;
/** Of a 32-bit number of milliseconds: 24 days. */
const deltaMax = 2 ** 31 - 1;

/** @returns bytes that the row takes */
export function rowBytes({
  values,
  bucket,
  alsoNotFinite,
}: Pick<StoredRow, 'values' | 'bucket' | 'alsoNotFinite'>): number {
  let count = 0;
  for (const name of trainingMetricNames) if (values[name] !== undefined) count += 1;
  const others = alsoNotFinite === undefined ? 0 : maskBytes;
  return rowHeadBytes + count * valueBytes + (bucket === null ? 0 : bucketBytes) + others;
}

function omittedBytes(metrics: number): number {
  return valueBytes + maskBytes + metrics * 2 * valueBytes;
}

/** @param frame of at most `frameRowsMax` rows */
export function encodeFrame({ attempt, nodeRank, position, rows, omitted, end }: Frame): Buffer {
  const endBytes = omitted === undefined ? 0 : omittedBytes(Object.keys(omitted.values).length);
  const bodyBytes = bodyHeadBytes + rows.reduce((sum, row) => sum + rowBytes(row), 0) + endBytes;
  const bytes = Buffer.allocUnsafe(headBytes + bodyBytes);
  const baseMs = rows[0]?.atMs ?? (end === 'lost' ? 1 : 0);
  bytes.writeUInt32LE(bodyBytes, 0);
  bytes.writeUInt32LE(attempt, headBytes);
  bytes.writeUInt32LE(nodeRank, headBytes + 4);
  bytes.writeDoubleLE(position, headBytes + 8);
  bytes.writeDoubleLE(baseMs, headBytes + 16);
  bytes.writeUInt16LE(rows.length | (omitted === undefined ? 0 : omittedBit), headBytes + 24);
  let at = headBytes + bodyHeadBytes;
  for (const row of rows) at = writeRow(bytes, at, row, baseMs);
  if (omitted !== undefined) writeOmitted(bytes, at, omitted);
  bytes.writeUInt32LE(crc32(bytes.subarray(headBytes)), 4);
  return bytes;
}

function writeRow(bytes: Buffer, start: number, row: StoredRow, baseMs: number): number {
  const { values, bucket, notFinite, atMs, alsoNotFinite } = row;
  let mask = (notFinite > 0 ? notFiniteBit : 0) | (bucket === null ? 0 : bucketBit);
  if (alsoNotFinite !== undefined) mask |= othersBit;
  let at = start + rowHeadBytes;
  for (const [index, name] of trainingMetricNames.entries()) {
    const value = values[name];
    if (value === undefined) continue;
    mask |= 1 << index;
    at = bytes.writeDoubleLE(value, at);
  }
  bytes.writeUInt16LE(mask, start);
  bytes.writeInt32LE(Math.max(-deltaMax, Math.min(deltaMax, Math.round(atMs - baseMs))), start + 2);
  if (bucket !== null) {
    for (const value of [bucket.firstStep, bucket.min, bucket.max, bucket.mean])
      at = bytes.writeDoubleLE(value ?? Number.NaN, at);
    at = bytes.writeUInt32LE(bucket.rows, at);
    at = bytes.writeUInt32LE(notFinite, at);
  }
  return alsoNotFinite === undefined ? at : bytes.writeUInt16LE(maskOf(alsoNotFinite), at);
}

function writeOmitted(bytes: Buffer, start: number, { values, unreadBytes }: Omitted): void {
  const names = trainingMetricNames.filter((name) => values[name] !== undefined);
  let at = bytes.writeDoubleLE(unreadBytes, start);
  at = bytes.writeUInt16LE(maskOf(names), at);
  for (const name of names) {
    at = bytes.writeDoubleLE(values[name]?.rows ?? 0, at);
    at = bytes.writeDoubleLE(values[name]?.notFinite ?? 0, at);
  }
}

function readOmitted(body: Buffer, start: number): Omitted {
  const values: Partial<Record<TrainingMetricName, ValueCount>> = {};
  let at = start + valueBytes + maskBytes;
  for (const name of namesIn(body.readUInt16LE(start + valueBytes))) {
    values[name] = { rows: body.readDoubleLE(at), notFinite: body.readDoubleLE(at + valueBytes) };
    at += 2 * valueBytes;
  }
  return { values, unreadBytes: body.readDoubleLE(start) };
}

/** @returns a bit for each metric, by its place in `trainingMetricNames` */
function maskOf(names: readonly TrainingMetricName[]): number {
  return names.reduce((mask, name) => mask | (1 << trainingMetricNames.indexOf(name)), 0);
}

function namesIn(mask: number): readonly TrainingMetricName[] {
  return trainingMetricNames.filter((_, index) => (mask & (1 << index)) !== 0);
}

/**
 * @param start where a frame begins in `bytes`
 * @returns 'more': the bytes end within the frame. 'damaged': no frame begins there, or its sum is wrong
 */
export function readFrame(bytes: Buffer, start: number): { frame: Frame; end: number } | 'more' | 'damaged' {
  if (bytes.length - start < headBytes) return 'more';
  const bodyBytes = bytes.readUInt32LE(start);
  if (bodyBytes < bodyHeadBytes || bodyBytes > bodyBytesMax) return 'damaged';
  const end = start + headBytes + bodyBytes;
  if (end > bytes.length) return 'more';
  const body = bytes.subarray(start + headBytes, end);
  if (crc32(body) !== bytes.readUInt32LE(start + 4)) return 'damaged';
  return { frame: decodeBody(body), end };
}

function decodeBody(body: Buffer): Frame {
  const baseMs = body.readDoubleLE(16);
  const counted = body.readUInt16LE(24);
  const count = counted & ~omittedBit;
  const rows: StoredRow[] = [];
  let at = bodyHeadBytes;
  for (let index = 0; index < count; index += 1) {
    const mask = body.readUInt16LE(at);
    const atMs = baseMs + body.readInt32LE(at + 2);
    at += rowHeadBytes;
    const values: Partial<Record<TrainingMetricName, number>> = {};
    for (let metric = 0; metric < trainingMetricNames.length; metric += 1) {
      if ((mask & (1 << metric)) === 0) continue;
      values[trainingMetricNames[metric] as TrainingMetricName] = body.readDoubleLE(at);
      at += valueBytes;
    }
    let notFinite = (mask & notFiniteBit) === 0 ? 0 : 1;
    let bucket: LossBucket | null = null;
    if ((mask & bucketBit) !== 0) {
      bucket = {
        firstStep: orNull(body.readDoubleLE(at)),
        min: orNull(body.readDoubleLE(at + 8)),
        max: orNull(body.readDoubleLE(at + 16)),
        mean: orNull(body.readDoubleLE(at + 24)),
        rows: body.readUInt32LE(at + 32),
      };
      notFinite = body.readUInt32LE(at + 36);
      at += bucketBytes;
    }
    if ((mask & othersBit) === 0) {
      rows.push({ atMs, values, notFinite, bucket });
    } else {
      rows.push({ atMs, values, notFinite, bucket, alsoNotFinite: namesIn(body.readUInt16LE(at)) });
      at += maskBytes;
    }
  }
  return {
    attempt: body.readUInt32LE(0),
    nodeRank: body.readUInt32LE(4),
    position: body.readDoubleLE(8),
    rows,
    ...((counted & omittedBit) === 0 ? {} : { omitted: readOmitted(body, at) }),
    ...(counted === 0 ? { end: baseMs === 0 ? ('complete' as const) : ('lost' as const) } : {}),
  };
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}
