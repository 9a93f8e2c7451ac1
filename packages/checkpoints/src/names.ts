/** Which names in a checkpoint directory are checkpoints, and of which step. */
import { nameBeforeSetAside } from '@muster/common/checkpoints';
import { matchPattern, type NamePattern, stepFrom } from './namePattern.ts';

export type EntryKind = 'file' | 'directory';

export interface RecognisedName {
  /** null: the name does not have it. An epoch is no step: how many steps it has, only the program knows. */
  readonly step: number | null;
}

/** A file with this name shows that the program has completed its training. */
export const trainingCompleteName = 'training_complete.marker';

/** Names of files that hold the state of a program. */
const stateFile = /^(.+?)\.(?:pt|pth|ckpt|bin|safetensors|distcp|npz|pt\.tar|pth\.tar)$/;
/** Programs save small states as JSON, and far more often settings and results: only a step in the name distinguishes them. */
const jsonFile = /^(.+)\.json$/;

/** `quarantined`: Muster itself renames what is corrupt. */
const temporary = /^\.?(?:te?mp)[-_.]|^\.tmp|[-_.](?:te?mp|partial|incomplete|part)$|\.orbax-checkpoint-tmp-/;
const quarantined = /\.corrupt$/;

/** A name that programs give to what they have not finished yet. */
export function isTemporaryName(name: string): boolean {
  return temporary.test(name);
}

export function isStateFileName(name: string): boolean {
  return stateFile.test(name);
}

/** What stands beside checkpoints under the same numbers and is none by itself. */
const companion =
  /^(?:optim(?:izer)?|sched(?:uler)?|lr_scheduler|rng(?:_state)?|scaler|ema|evals?|logs?|metrics|samples)(?:[-_.]|$)/;
/** One piece of several. */
const shard = /-\d+-of-\d+$/;

/** Each captures the digits of the step, where its names have one. Of directories, and of files without their suffix. */
const known: readonly RegExp[] = [
  // Hugging Face; nanoGPT's `ckpt` and its kin with a number or `last`.
  /^(?:checkpoint|ckpt)(?:[-_]?(\d+))?$/,
  /^(?:(?:checkpoint|ckpt|model)[-_])?(?:last|latest|final|best)(?:-v\d+)?$/,
  /^(?:last|latest|final|best)[-_](?:checkpoint|ckpt|model)$/,
  // DeepSpeed.
  /^global_?step[-_]?(\d+)$/,
  // Megatron, LitGPT, torchtitan, and `model_step_100`; LitGPT's `-ckpt` after it.
  /^(?:[\w.-]+?[-_])?(?:global_step|step|iteration|iter)[-_=]?(\d+)(?:-ckpt|-v\d+)?$/,
  // Lightning, with or without metrics; its suffix where a name was taken.
  /^(?:[\w.-]+[-_=])?epoch[-_=]?\d+[-_.](?:.*[-_])?step[-_=]?(\d+)(?:[-_].*)?$/,
  // A whole epoch: no step.
  /^(?:[\w.-]+[-_])?epoch[-_=]?\d+(?:-v\d+)?$/,
  // fairseq: epoch and updates.
  /^checkpoint_\d+_(\d+)$/,
];

/**
 * One that was set aside is recognised by the name that it had.
 * @param given path below the checkpoint directory, with `/` between its parts
 * @param pattern of the job's spec: where there is one, it alone decides, for the user knows better
 * @returns null: this is none, or not yet one, or one that was set aside
 */
export function recogniseName(
  given: string,
  kind: EntryKind,
  pattern: NamePattern | null,
): RecognisedName | null {
  const path = nameBeforeSetAside(given);
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (name.startsWith('.') || isTemporaryName(name) || quarantined.test(name)) return null;
  if (pattern !== null) return matchPattern(pattern, path);
  // A directory that a program calls so is a link's place, or holds no more than a name.
  if (name === 'latest') return null;
  const isFile = kind === 'file';
  const stem =
    (stateFile.exec(name) ?? (isFile ? jsonFile.exec(name) : null))?.[1] ?? (isFile ? undefined : name);
  if (stem === undefined || companion.test(stem) || shard.test(stem)) return null;
  for (const each of known) {
    const match = each.exec(stem);
    if (match !== null && match[1] === undefined && jsonFile.test(name)) return null;
    if (match !== null) return { step: match[1] === undefined ? null : stepFrom(match[1]) };
  }
  return null;
}

const chosen = /(?:^|[-_.])(?:best|final)(?:[-_.]|$)/;

/** Its program calls it its best or its final one. @param path below the checkpoint directory */
export function isChosenName(path: string): boolean {
  return path.split('/').some((part) => chosen.test(part));
}

/**
 * A directory of such a name, `checkpoint` or `final`, is one checkpoint to some programs, and to others the place where all
 * of them lie: its content decides.
 */
export function mayBePlace(name: string): boolean {
  return !/\d/.test(name);
}

/** A directory that may hold checkpoints and is none. */
export function mayHoldCheckpoints(name: string): boolean {
  return !name.startsWith('.') && !isTemporaryName(name) && !quarantined.test(name);
}
