/** One file of a checkpoint by its headers and directories: what it is, and whether it can be whole. */

import { examineDistcp, readStoredPieces, type StoredPiece, type StoredPieces } from './distcp.ts';
import { asStep, isRecord, readJson } from './json.ts';
import { isStateFileName } from './names.ts';
import {
  CorruptFile,
  OpaqueFile,
  type OpenedFile,
  type ReadPace,
  readPart,
  type SummedRange,
} from './openedFile.ts';
import { beginsLikeSafetensors, examineSafetensors } from './safetensors.ts';
import { beginsLikeOldTorch, examineTorch } from './torch.ts';
import { beginsLikeZip, findEnd } from './zip.ts';

export type FileFinding = WholeFile | OpaqueFinding | { readonly kind: 'corrupt'; readonly problem: string };

export interface WholeFile {
  readonly kind: 'whole';
  readonly format: 'torch' | 'safetensors' | 'json' | 'metadata';
  /** For a deep look. */
  readonly sums: readonly SummedRange[];
  readonly step: number | null;
  /** Of safetensors. */
  readonly tensors: ReadonlySet<string> | null;
  /** Of the index of shards: the file of each tensor. */
  readonly weightMap: ReadonlyMap<string, string> | null;
  /** Of `.metadata`: what it looks for in the files beside it. */
  readonly storedPieces: StoredPieces | null;
}

/** A file that cannot be judged, or need not be: it holds no state of the program. */
export interface OpaqueFinding {
  readonly kind: 'opaque';
  readonly because: string;
}

const headBytes = 64;
const torchSuffix = /\.(?:pt|pth|ckpt)(?:\.tar)?$/;
/** What `torch.save` has written, too; under another name `.bin` may be anything. */
const huggingFaceBin =
  /^(?:(?:diffusion_)?pytorch_model|adapter_model|optimizer|scheduler|training_args)[^/]*\.bin$/;

/**
 * @param pieces what the `.metadata` beside it looks for in it
 * @param buffer of some megabytes, for files that are read in whole
 * @throws {ChangingFile} and the signal's reason
 */
export async function examineFile(
  file: OpenedFile,
  pieces: readonly StoredPiece[],
  pace: ReadPace,
  buffer: Buffer,
): Promise<FileFinding> {
  try {
    if (file.name.endsWith('.distcp') && file.bytes > 0)
      return whole('torch', await examineDistcp(file, pieces, pace));
    return await examine(file, pace, buffer);
  } catch (error) {
    if (error instanceof CorruptFile) return { kind: 'corrupt', problem: error.message };
    if (error instanceof OpaqueFile) return { kind: 'opaque', because: error.message };
    throw error;
  }
}

async function examine(file: OpenedFile, pace: ReadPace, buffer: Buffer): Promise<FileFinding> {
  const { name } = file;
  const [isJson, isMetadata] = [name.endsWith('.json'), name === '.metadata'];
  if (file.bytes === 0 && (isJson || isMetadata || isStateFileName(name))) throw new CorruptFile('is empty');
  if (isMetadata)
    return { ...whole('metadata', []), storedPieces: await readStoredPieces(file, pace, buffer) };
  if (isJson) return examineJson(file);
  if (name.endsWith('.safetensors')) return wholeSafetensors(file);
  const head = readPart(file, 0, headBytes);
  if (beginsLikeZip(head) || (isStateFileName(name) && findEnd(file, file.bytes) !== null))
    return whole('torch', await examineTorch(file, pace));
  if (beginsLikeOldTorch(head))
    throw new OpaqueFile('has the format before PyTorch 1.6, which keeps no sums');
  // What the file system leaves behind when the machine goes down before the data is on disk.
  if ((torchSuffix.test(name) || huggingFaceBin.test(name)) && head.every((byte) => byte === 0))
    throw new CorruptFile('is damaged: it begins with zeros');
  if (head[0] === 0x80 && (head[1] ?? 0) <= 5)
    throw new OpaqueFile('is a pickle, which is not loaded to look at it');
  if (isStateFileName(name) && beginsLikeSafetensors(head)) return wholeSafetensors(file);
  throw new OpaqueFile('has an unknown format');
}

function wholeSafetensors(file: OpenedFile): WholeFile {
  const { tensors, step } = examineSafetensors(file);
  return { ...whole('safetensors', []), tensors, step };
}

function examineJson(file: OpenedFile): WholeFile {
  const value = readJson(file);
  const json = whole('json', []);
  if (!isRecord(value)) return json;
  const weightMap = value['weight_map'];
  if (file.name.endsWith('.index.json') && isRecord(weightMap)) {
    const named = Object.entries(weightMap).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    );
    return { ...json, weightMap: new Map(named) };
  }
  return file.name === 'trainer_state.json' ? { ...json, step: asStep(value['global_step']) } : json;
}

function whole(format: WholeFile['format'], sums: readonly SummedRange[]): WholeFile {
  return { kind: 'whole', format, sums, step: null, tensors: null, weightMap: null, storedPieces: null };
}
