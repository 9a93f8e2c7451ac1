/** What a look at a checkpoint directory finds, before a byte of any checkpoint is read. */

/** One that is there, whole or not. */
export interface CheckpointCandidate {
  /** Path below the directory that was looked at, with `/` between its parts. */
  readonly name: string;
  readonly kind: 'file' | 'directory';
  /** From its name; null: that does not tell. An epoch is no step. */
  readonly step: number | null;
  /** As names tell, in the words of `CheckpointFacts.format`. */
  readonly format: string;
  /** Of all its files. */
  readonly bytes: number;
  readonly files: number;
  /** Wall clock of the node: the newest file's last write. Of an empty directory, its own. */
  readonly savedAtMs: number;
  /** 32 characters from names, inodes, sizes and times of its files: another one as soon as anything was written. */
  readonly version: string;
  /** What its program writes last of all and is there, such as `.metadata`; null: its format has no such thing, or not yet. */
  readonly marker: string | null;
  /** What shows that it is still being written, such as a temporary name inside; null: nothing does. */
  readonly unfinished: string | null;
}

export interface CheckpointScan {
  /** By name, in code point order. */
  readonly candidates: readonly CheckpointCandidate[];
  /**
   * A sentence's end that follows the directory's path, such as `is a symbolic link`; null: all of it was looked at. With
   * one, candidates may still have been found: the directory holds more than was looked at.
   */
  readonly problem: string | null;
  /** The program has left `training_complete.marker`: it needs no further attempt. */
  readonly isTrainingComplete: boolean;
}
