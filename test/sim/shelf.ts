/** Directories of checkpoints: on a machine's own disk, where they outlive agents and reboots, or on storage that all see. */
import { posix } from 'node:path';
import type { JobId, TaskRef } from '@muster/common/ids';
import type { Random } from './random.ts';

/**
 * `corrupt`: a verification sees that. `rotten`: none sees it, and what begins from it reports that and dies. `poisoned`: it
 * loads, and what begins from it dies anyway.
 */
export type Quality = 'good' | 'corrupt' | 'rotten' | 'poisoned';

/** As it lies there; the same name written again is another one. */
export interface SavedCheckpoint {
  readonly name: string;
  readonly version: string;
  readonly step: number;
  readonly quality: Quality;
  readonly savedBy: TaskRef;
  /** Wall clock of its machine when its last byte was written. null: it is half written, and may stay so. */
  savedAtMs: number | null;
  /** What an agent has found out and written down beside it. */
  verdict: 'verified' | 'corrupt' | null;
  /** And has read a second time, much later. */
  reread: boolean;
}

/** How a checkpoint is found by who is to begin from it. */
export type ResumeState = 'missing' | 'half' | 'corrupt' | 'unverified' | 'whole';

export class Shelf {
  /** By name. */
  readonly checkpoints = new Map<string, SavedCheckpoint>();
  /** Whose they are, by the index. null: no job has claimed it yet. */
  owner: JobId | null = null;

  /** What has the name already is lost, as with any rename. */
  rename(saved: SavedCheckpoint, name: string): void {
    this.checkpoints.delete(saved.name);
    this.checkpoints.set(name, { ...saved, name });
  }

  stateOf(name: string): ResumeState {
    const known = this.checkpoints.get(name);
    if (known === undefined) return 'missing';
    if (known.savedAtMs === null) return 'half';
    if (known.quality === 'corrupt') return 'corrupt';
    return known.verdict === 'verified' ? 'whole' : 'unverified';
  }
}

/** All directories of one disk. */
export class Shelves {
  private readonly shelves = new Map<string, Shelf>();

  at(path: string): Shelf {
    const known = this.shelves.get(path) ?? new Shelf();
    this.shelves.set(path, known);
    return known;
  }
}

export const sharedRoot = '/shared/';

/** Where this machine finds a directory. */
export function shelfAt(path: string, own: Shelves, shared: Shelves): Shelf {
  return (path.startsWith(sharedRoot) ? shared : own).at(path);
}

export function placeOf(checkpointPath: string): { readonly directory: string; readonly name: string } {
  return { directory: posix.dirname(checkpointPath), name: posix.basename(checkpointPath) };
}

export function someQuality(random: Random): Quality {
  if (random.chance(0.8)) return 'good';
  return random.pick(['corrupt', 'corrupt', 'rotten', 'poisoned']);
}
