/**
 * Which checkpoints in a directory belong to a job, that is to the chain of its attempts and of the jobs that it continues. Pure.
 *
 * What stood in the directory when the chain began is listed in the index, by name and version. All else belongs to the chain,
 * whatever its times: a clock may be wrong or stepped, and programs such as `cp -p`, `rsync -t` and `tar` set times as they like.
 */
import type { CheckpointVersion } from '@muster/common/checkpoints';
import type { CheckpointIndex } from './indexFile.ts';

/** A checkpoint that is not of this chain. */
export interface StoodBefore extends CheckpointVersion {
  /** The chain that it belonged to, by the index that was there. null: no index named one. */
  readonly job: string | null;
}

export interface Belongings {
  /** What stood there when the chain began. */
  readonly before: readonly StoodBefore[];
  /** What an earlier attempt of the chain has left without a word: it was not there when that began, and no index names it. */
  readonly found: readonly CheckpointVersion[];
}

/** A checkpoint as a scan sees it. */
export interface ScannedCheckpoint extends CheckpointVersion {
  /** Wall clock of whoever wrote it. It decides nothing here, except for an index without a list. */
  readonly savedAtMs: number;
}

/** The attempt that is about to begin. */
export interface BeginningAttempt {
  /** `Assignment.checkpointJobId` */
  readonly chain: string;
  /** What it resumes from, which is of the chain whatever an index says. null: nothing, or a checkpoint in another place. */
  readonly resumesFrom: string | null;
}

/** Sorts what is there before an attempt begins. The same again when it is asked again before the attempt runs. */
export function belongingsOf(
  index: CheckpointIndex | null,
  candidates: readonly ScannedCheckpoint[],
  { chain, resumesFrom }: BeginningAttempt,
): Belongings {
  const before = index?.job === chain ? listedIn(index, candidates) : inForeign(index, candidates, chain);
  const others = before.filter(({ name }) => name !== resumesFrom);
  const versions = versionsOf([...others, ...(index?.job === chain ? index.checkpoints : [])]);
  const found = candidates.filter(({ name, version }) => versions.get(name) !== version);
  return { before: others, found: found.map(({ name, version }) => ({ name, version })) };
}

/** Of what is listed, all that is there: a name that is gone may be given to a checkpoint of the chain. */
function listedIn(index: CheckpointIndex, candidates: readonly ScannedCheckpoint[]): readonly StoodBefore[] {
  if (index.before === null) return beforeByClock(candidates, index.checkpoints, index.sinceMs);
  const present = versionsOf(candidates);
  return index.before.filter(({ name, version }) => present.get(name) === version);
}

/** A new chain. What an earlier one of the same jobs has saved here is its own, as far as that is known. */
function inForeign(
  index: CheckpointIndex | null,
  candidates: readonly ScannedCheckpoint[],
  chain: string,
): readonly StoodBefore[] {
  const named = index === null ? new Map<string, string | null>() : ownersIn(index);
  const listed = versionsOf(index?.before ?? []);
  return candidates
    .map(({ name, version }) => {
      const isListed = listed.get(name) === version;
      return { name, version, job: isListed ? (named.get(name) ?? null) : (index?.job ?? null) };
    })
    .filter(({ job }) => job !== chain);
}

function ownersIn({ before }: CheckpointIndex): ReadonlyMap<string, string | null> {
  return new Map((before ?? []).map(({ name, job }) => [name, job]));
}

/**
 * For an index of a release that kept no list, and for a task that such an agent has started: once, times decide as they did there.
 * @param sinceMs wall clock: the chain had saved nothing before
 */
export function beforeByClock(
  candidates: readonly ScannedCheckpoint[],
  known: readonly CheckpointVersion[],
  sinceMs: number,
): readonly StoodBefore[] {
  const own = new Set(known.map(({ name }) => name));
  return candidates
    .filter(({ name, savedAtMs }) => !own.has(name) && savedAtMs < sinceMs)
    .map(({ name, version }) => ({ name, version, job: null }));
}

/**
 * Chain by name of checkpoint, for each checkpoint that belongs to one.
 * @param present those that are there
 */
export function chainsOf(
  index: CheckpointIndex,
  present: readonly CheckpointVersion[],
): ReadonlyMap<string, string> {
  const listed = versionsOf(index.before ?? []);
  const named = ownersIn(index);
  const owned = present.map(({ name, version }): [string, string | null] => [
    name,
    listed.get(name) === version ? (named.get(name) ?? null) : index.job,
  ]);
  return new Map(owned.filter((each): each is [string, string] => each[1] !== null));
}

/** Version by name. */
export function versionsOf(checkpoints: readonly CheckpointVersion[]): ReadonlyMap<string, string> {
  return new Map(checkpoints.map(({ name, version }) => [name, version]));
}
