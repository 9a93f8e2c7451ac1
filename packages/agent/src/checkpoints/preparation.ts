/** What happens in a checkpoint directory before an attempt begins: nothing of the job runs, so things may be moved. */

import type { NamePattern } from '@muster/checkpoints/namePattern';
import { scanCheckpoints } from '@muster/checkpoints/scan';
import type { CorruptCheckpoint } from '@muster/common/checkpoints';
import { reasonOf } from './heldDirectory.ts';
import { type IndexedCheckpoint, readIndex, writeIndex } from './indexFile.ts';
import { isThere, quarantine } from './quarantine.ts';

export interface DirectoryToPrepare {
  readonly root: string;
  readonly pattern: NamePattern | null;
  /** As the coordinator knows them: of a look at them, or because a program could not load them. */
  readonly corrupt: readonly CorruptCheckpoint[];
}

/**
 * Sets corrupt checkpoints aside, and notes that in the index. One whose name meanwhile holds another version, which the
 * index knows to be good, stays. Again is fine.
 * @param warn gets what could not be done; the attempt goes on without it
 */
export async function setAsideCorrupt(
  { root, pattern, corrupt }: DirectoryToPrepare,
  warn: (message: string) => void,
): Promise<void> {
  if (corrupt.length === 0) return;
  const index = await readIndex(root);
  const versions = new Map(
    (await scanCheckpoints(root, { pattern })).candidates.map(({ name, version }) => [name, version]),
  );
  const isGood = ({ name, version, verdict }: IndexedCheckpoint) =>
    verdict === 'verified' && versions.get(name) === version;
  const good = new Set((index?.checkpoints ?? []).filter(isGood).map(({ name }) => name));
  const moved = new Map<string, string>();
  for (const { name, version } of corrupt) {
    if (good.has(name) && versions.get(name) !== version) continue;
    try {
      const aside = await quarantine(root, name);
      if (aside !== null) moved.set(name, aside);
    } catch (error) {
      warn(`the corrupt checkpoint ${name} could not be set aside: ${reasonOf(error)}`);
    }
  }
  if (moved.size === 0 || index === null) return;
  const asideNow = [...moved].map(([was, name]) => {
    const problem = index.checkpoints.find((each) => each.name === was)?.problem ?? null;
    return { name, was, problem };
  });
  const checkpoints = index.checkpoints.filter(({ name }) => !moved.has(name));
  const quarantined = [...index.quarantined, ...asideNow].slice(-quarantinedMax);
  await writeIndex(root, { ...index, checkpoints, quarantined }).catch((error: unknown) => {
    warn(`the index of its checkpoints cannot be written: ${reasonOf(error)}`);
  });
}

/** Newer ones tell more. */
const quarantinedMax = 64;

/** @returns a sentence; null: it is there */
export async function resumeProblem(root: string, name: string): Promise<string | null> {
  return (await isThere(root, name))
    ? null
    : `the checkpoint ${name}, which this attempt was to begin from, is not in ${root} on this node`;
}
