/**
 * What the attempts before have saved after the checkpoint that this one resumes from is renamed to `NAME.attempt-N`, before the
 * program runs: it would write over that, one step after the other. Nothing of the job runs meanwhile on this node.
 */

import { versionOf } from '@muster/checkpoints/listing';
import { type CheckpointScan, scanCheckpoints } from '@muster/checkpoints/scan';
import { type CheckpointVersion, isSetAside, nameBeforeSetAside } from '@muster/common/checkpoints';
import type { Assignment } from '../taskFacts/assignment.ts';
import { versionsOf } from './belonging.ts';
import { reasonOf, withPlaceOf } from './checkpointPlace.ts';
import { type CheckpointIndex, type IndexedCheckpoint, readIndex, writeIndex } from './indexFile.ts';
import type { SavePlace } from './parts.ts';

/** A checkpoint that the attempt is going to write over. */
export interface Overtaken extends CheckpointVersion {
  /** The attempt that saved it, or the last one that can have. */
  readonly attempt: number;
}

/** What the index says of the checkpoints of a chain. */
interface IndexOfChain {
  readonly checkpoints: readonly Pick<
    IndexedCheckpoint,
    'name' | 'version' | 'step' | 'verdict' | 'attempt'
  >[];
  readonly found: readonly CheckpointVersion[];
}

/** More under one name are no use to anybody. */
const numbersMax = 1_000;

/**
 * Renames what is newer than the checkpoint that the attempt resumes from, and notes that in the index. May be repeated: after a crash
 * in the middle, the rest is renamed.
 * @param warn gets what could not be done. The attempt runs without it
 */
export async function setNewerAside(
  { root, pattern }: Pick<SavePlace, 'root' | 'pattern'>,
  assignment: Pick<Assignment, 'task' | 'resume' | 'checkpointJobId'>,
  warn: (message: string) => void,
): Promise<void> {
  const { jobId, attempt } = assignment.task;
  const index = await readIndex(root);
  // Another attempt has begun here since: an order that comes too late must not take its checkpoints away.
  const isCurrent = index?.marker?.job === jobId && index.marker.attempt === attempt;
  if (index === null || index.job !== assignment.checkpointJobId || !isCurrent) return;
  const overtaken = overtakenBy(index, await scanCheckpoints(root, { pattern }), assignment);
  for (const each of overtaken) {
    await renameAside(root, each).catch((error: unknown) =>
      warn(`the checkpoint ${each.name}, which this attempt may write over, stays: ${reasonOf(error)}`),
    );
  }
  const next = withNamesOf(index, await scanCheckpoints(root, { pattern }));
  if (next === index) return;
  await writeIndex(root, next, true).catch((error: unknown) =>
    warn(`the index of its checkpoints cannot be written: ${reasonOf(error)}`),
  );
}

/**
 * The checkpoints of earlier attempts that one is going to write over: those of later steps than it resumes from. An attempt that
 * starts from scratch takes what is verified away, which it was not offered. What nobody could verify stays there: its program may know
 * its own format, and continue from that.
 */
export function overtakenBy(
  index: IndexOfChain,
  { candidates }: { readonly candidates: readonly (CheckpointVersion & { readonly step: number | null })[] },
  { task, resume }: Pick<Assignment, 'task' | 'resume'>,
): readonly Overtaken[] {
  const indexed = new Map(index.checkpoints.map((each) => [each.name, each]));
  const found = versionsOf(index.found);
  const from = resume === null ? null : (resume.step ?? indexed.get(resume.name)?.step ?? null);
  return candidates.flatMap(({ name, version, step }): Overtaken[] => {
    const entry = indexed.get(name);
    const known = entry?.version === version ? entry : null;
    const isEarlier = known !== null || found.get(name) === version;
    if (isSetAside(name) || !isEarlier || isResumedFrom(name, resume)) return [];
    const at = step ?? known?.step ?? null;
    const isOvertaken =
      resume === null ? known?.verdict === 'verified' : from !== null && at !== null && at > from;
    return isOvertaken ? [{ name, version, attempt: known?.attempt ?? task.attempt - 1 }] : [];
  });
}

/** It is that one, holds it, or lies in it. */
function isResumedFrom(name: string, resume: Assignment['resume']): boolean {
  if (resume === null) return false;
  return `${resume.name}/`.startsWith(`${name}/`) || `${name}/`.startsWith(`${resume.name}/`);
}

function renameAside(root: string, { name, version, attempt }: Overtaken): Promise<void> {
  return withPlaceOf(root, name, async (directory, last) => {
    if ((await directory.identify(last)) === null || (await versionOf(directory, last)) !== version) return;
    for (let number = 1; number <= numbersMax; number += 1) {
      const aside = `${last}.attempt-${attempt}${number === 1 ? '' : `.${number}`}`;
      if ((await directory.identify(aside)) !== null) continue;
      await directory.rename(last, aside);
      return;
    }
    throw new Error(`${numbersMax} checkpoints of that name were set aside already; delete some`);
  });
}

/** The index with the names that checkpoints were given, by this look or by one that did not come to its end. */
function withNamesOf(
  index: CheckpointIndex,
  { candidates }: Pick<CheckpointScan, 'candidates'>,
): CheckpointIndex {
  const present = versionsOf(candidates);
  const listed = versionsOf([...index.checkpoints, ...index.found]);
  const renamed = new Map(
    candidates.flatMap(({ name, version }): [string, string][] => {
      const before = nameBeforeSetAside(name);
      const isOf = isSetAside(name) && listed.get(before) === version && present.get(before) !== version;
      return isOf && listed.get(name) !== version ? [[before, name]] : [];
    }),
  );
  if (renamed.size === 0) return index;
  const named = <T extends CheckpointVersion>(each: T): T => {
    const name = renamed.get(each.name);
    return name !== undefined && present.get(name) === each.version ? { ...each, name } : each;
  };
  const checkpoints: IndexedCheckpoint[] = index.checkpoints.map(named);
  checkpoints.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { ...index, checkpoints, found: index.found.map(named) };
}
