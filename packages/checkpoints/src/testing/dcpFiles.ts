/** What `torch.distributed.checkpoint` writes, by hand, as of its newest version. */
import type { Files } from './checkpointDir.ts';
import { torchEntries, zipOf } from './torchFile.ts';

export interface ListedPiece {
  readonly file: string;
  readonly offset: number;
  readonly length: number;
  /** As its extensions call them, such as `stream.zstd`. */
  readonly transforms?: readonly string[];
}

/** `.metadata`, with the pickle that Python 3.8 to 3.13 write by themselves. */
export function metadataOf(pieces: readonly ListedPiece[]): Buffer {
  const items = pieces.map((piece, index) => Buffer.concat([textOf(`layer.${index}`), infoOf(piece)]));
  const body = Buffer.concat([
    classOf('torch.distributed.checkpoint.metadata', 'Metadata'),
    Buffer.from(')\x81}(', 'latin1'),
    textOf('storage_data'),
    Buffer.from('}('),
    ...items,
    Buffer.from('u'),
    textOf('planner_data'),
    Buffer.from('Nub.'),
  ]);
  const frame = Buffer.alloc(8);
  frame.writeBigUInt64LE(BigInt(body.length));
  return Buffer.concat([Buffer.from('\x80\x04\x95', 'latin1'), frame, body]);
}

function infoOf({ file, offset, length, transforms }: ListedPiece): Buffer {
  return Buffer.concat([
    classOf('torch.distributed.checkpoint.filesystem', '_StorageInfo'),
    Buffer.from(')\x81\x94}\x94(', 'latin1'),
    textOf('relative_path'),
    textOf(file),
    textOf('offset'),
    numberOf(offset),
    textOf('length'),
    numberOf(length),
    ...(transforms === undefined
      ? []
      : [textOf('transform_descriptors'), Buffer.from(']('), ...transforms.map(textOf), Buffer.from('e')]),
    Buffer.from('ub'),
  ]);
}

function classOf(module: string, name: string): Buffer {
  return Buffer.concat([textOf(module), textOf(name), Buffer.from('\x93\x94', 'latin1')]);
}

function textOf(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x8c, text.length]), Buffer.from(text), Buffer.from([0x94])]);
}

function numberOf(value: number): Buffer {
  const bytes = Buffer.alloc(10);
  bytes.set([0x8a, 8]);
  bytes.writeBigInt64LE(BigInt(value), 2);
  return bytes;
}

/** What `torch.save` makes of one tensor. @param crc default: that of the data; 0: written without sums */
export function archiveOf(fill: number, bytes = 5_000, crc?: number): Buffer {
  const entries = torchEntries(Buffer.alloc(bytes, fill));
  return zipOf(crc === undefined ? entries : entries.map((entry) => ({ ...entry, crc })));
}

/** A directory as the ranks save it. @param ranks what each writes, piece by piece; lengths as PyTorch records them */
export function dcpOf(
  ranks: readonly (readonly Buffer[])[],
  lengthOf = (piece: Buffer) => piece.length,
): Files {
  const listed: ListedPiece[] = [];
  const files = ranks.map((pieces, rank): [string, Buffer] => {
    const file = `__${rank}_0.distcp`;
    let offset = 0;
    for (const piece of pieces) {
      listed.push({ file, offset, length: lengthOf(piece) });
      offset += piece.length;
    }
    return [file, Buffer.concat(pieces)];
  });
  return { '.metadata': metadataOf(listed), ...Object.fromEntries(files) };
}
