/** Which program's way of saving a checkpoint follows, from the names of its files, and what they show of its progress. */
import type { EntryKind } from './names.ts';
import { isTemporaryName } from './names.ts';

/** @param paths of its files, below it @returns one of the values of `CheckpointFacts.format` */
export function formatOf(name: string, kind: EntryKind, paths: readonly string[]): string {
  const last = name.slice(name.lastIndexOf('/') + 1);
  if (kind === 'file') return fileFormat(last);
  const has = (pattern: RegExp) => paths.some((path) => pattern.test(path));
  if (/^iter[-_]\d+$/.test(last)) return 'megatron';
  if (has(/(?:^|\/)trainer_state\.json$/)) return 'huggingface';
  if (has(/(?:^|\/)(?:zero_pp_rank_|bf16_zero_pp_rank_)|mp_rank_\d+_model_states\.pt$/)) return 'deepspeed';
  if (has(/\.distcp$/) || has(/^\.metadata$/)) return 'torch_dcp';
  if (has(/^config\.json$/) && has(/^(?:model|pytorch_model)[^/]*\.(?:safetensors|bin)$/))
    return 'huggingface';
  if (has(/\.(?:pt|pth|ckpt)$/)) return 'torch';
  return has(/\.safetensors$/) ? 'safetensors' : 'unknown';
}

function fileFormat(name: string): string {
  if (name.endsWith('.safetensors')) return 'safetensors';
  if (name.endsWith('.ckpt')) return 'lightning';
  if (name.endsWith('.json')) return 'json';
  return /\.(?:pt|pth)(?:\.tar)?$/.test(name) ? 'torch' : 'unknown';
}

/** The content of the files beside a checkpoint: its program writes them when one is complete. */
export interface Trackers {
  /** First line of `latest`, as DeepSpeed writes it; null: there is none. */
  readonly latest: string | null;
  /** Of `latest_checkpointed_iteration.txt`, as Megatron writes it. */
  readonly latestIteration: string | null;
}

/**
 * The file whose presence shows that all the others are there.
 * @param paths of its files, below it
 * @returns null: none is there, or this format has none
 */
export function completionMarker(
  name: string,
  format: string,
  paths: readonly string[],
  trackers: Trackers,
): string | null {
  const last = name.slice(name.lastIndexOf('/') + 1);
  const has = (path: string) => (paths.includes(path) ? path : null);
  switch (format) {
    case 'torch_dcp':
      return has('.metadata');
    case 'megatron':
      return isReached(last, trackers.latestIteration) ? 'latest_checkpointed_iteration.txt' : null;
    case 'deepspeed':
      return isReached(last, trackers.latest) ? 'latest' : null;
    case 'huggingface':
      // The trainer writes its state last. Without a trainer, the index comes after all the shards that it names.
      return has('trainer_state.json') ?? indexOfAllShards(paths);
    default:
      return null;
  }
}

/** Checkpoints are saved one after the other: the tracker names this one or a later one. */
function isReached(name: string, tracked: string | null): boolean {
  if (tracked === null) return false;
  if (tracked === name) return true;
  const [own, reached] = [name, tracked].map((text) => /(\d+)$/.exec(text)?.[1]);
  return own !== undefined && reached !== undefined && Number(own) <= Number(reached);
}

function indexOfAllShards(paths: readonly string[]): string | null {
  const index = paths.find((path) => /^[^/]+\.index\.json$/.test(path));
  return index !== undefined && missingShards(paths).length === 0 ? index : null;
}

/** From names such as `model-00001-of-00003.safetensors`. @returns paths that are not there, a few of them */
export function missingShards(paths: readonly string[]): readonly string[] {
  const present = new Set(paths);
  const missing = new Set<string>();
  for (const path of paths) {
    const match = /^(.*-)(\d{1,6})(-of-)(\d{1,6})(\.\w+)$/.exec(path);
    if (match === null) continue;
    const [, before = '', number = '', of = '', total = '', suffix = ''] = match;
    // `torch.distributed.checkpoint` writes only those files of a rank that something is in.
    if (/(?:^|\/)shard-\d+-[^/]*$/.test(before)) continue;
    const named = (each: number) =>
      `${before}${String(each).padStart(number.length, '0')}${of}${total}${suffix}`;
    const first = present.has(named(0)) ? 0 : 1;
    // More than there are files is nonsense, and would be a long way to count.
    const count = Math.min(Number(total), paths.length + 1);
    for (let each = first; each < first + count; each += 1) {
      if (!present.has(named(each))) missing.add(named(each));
    }
    if (missing.size >= 8) break;
  }
  return [...missing];
}

/** @returns what shows that it is still being written; null: nothing does */
export function unfinishedBecause(paths: readonly string[], bytes: number): string | null {
  const temporary = paths.find((path) => isTemporaryName(path.slice(path.lastIndexOf('/') + 1)));
  if (temporary !== undefined) return `${temporary} has a temporary name`;
  return bytes === 0 ? 'it is empty' : null;
}
