/** What happens in a checkpoint directory before an attempt begins: nothing of the job runs, so things may be moved. */
import type { NamePattern } from '@muster/checkpoints/namePattern';
import { scanCheckpoints } from '@muster/checkpoints/scan';
import type { CorruptCheckpoint } from '@muster/common/checkpoints';
import { chainsOf } from './belonging.ts';
import { reasonOf, withPlaceOf } from './checkpointPlace.ts';
import { readIndex, writeIndex } from './indexFile.ts';

export interface DirectoryToPrepare {
  readonly root: string;
  readonly pattern: NamePattern | null;
  /** What two readings have found corrupt, as the coordinator knows it. */
  readonly corrupt: readonly CorruptCheckpoint[];
}

/**
 * Sets corrupt checkpoints aside, and notes that in the index. One whose name holds another version by now stays: that version
 * has not been read twice. May be repeated.
 * @param warn gets what could not be done; the attempt continues without it
 */
export async function setAsideCorrupt(
  { root, pattern, corrupt }: DirectoryToPrepare,
  warn: (message: string) => void,
): Promise<void> {
  if (corrupt.length === 0) return;
  const versions = new Map(
    (await scanCheckpoints(root, { pattern })).candidates.map(({ name, version }) => [name, version]),
  );
  const moved = new Map<string, string>();
  for (const { name, version } of corrupt) {
    if (versions.get(name) !== version) continue;
    try {
      const aside = await quarantine(root, name);
      if (aside !== null) moved.set(name, aside);
    } catch (error) {
      warn(`the corrupt checkpoint ${name} could not be set aside: ${reasonOf(error)}`);
    }
  }
  const index = moved.size === 0 ? null : await readIndex(root);
  if (index === null) return;
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

/** Newer ones are more useful. */
const quarantinedMax = 64;

/** Why an attempt cannot begin. */
export interface PreparationProblem {
  readonly kind: 'corrupt_checkpoint' | 'checkpoint_conflict';
  /** A sentence for people. */
  readonly message: string;
}

export interface DirectoryToEnter {
  readonly root: string;
  readonly pattern: NamePattern | null;
  /** Whose checkpoints the attempt may find there: those of the job itself and of its lineage. */
  readonly lineage: readonly string[];
}

/**
 * Whether a directory holds checkpoints of a job that has nothing to do with this one, which would write over them. An index
 * alone does no harm: anyone who has deleted the checkpoints wants the directory to be used again.
 * @returns a sentence with the ways out; null: it holds none
 */
export async function conflictIn({ root, pattern, lineage }: DirectoryToEnter): Promise<string | null> {
  const index = await readIndex(root);
  if (index === null || lineage.includes(index.job)) return null;
  const { candidates } = await scanCheckpoints(root, { pattern });
  const chains = new Map(chainsOf(index, candidates));
  for (const { name } of index.checkpoints) if (await isThere(root, name)) chains.set(name, index.job);
  const names = [...chains].filter(([, chain]) => !lineage.includes(chain)).map(([name]) => name);
  const [chain] = names.map((name) => chains.get(name));
  if (chain === undefined) return null;
  const owner = chain === index.job ? (index.by ?? index.job) : chain;
  const newest = index.checkpoints.findLast(({ name }) => names.includes(name))?.name ?? names.at(-1);
  return (
    `${root} holds checkpoints of ${owner} (${names.length}, one of them ${newest}), which this job would write over. ` +
    `Give it a checkpoint.dir of its own, or continue from them: muster submit --resume-from ${owner}`
  );
}

/** @returns a sentence; null: it is there */
export async function resumeProblem(root: string, name: string): Promise<string | null> {
  return (await isThere(root, name))
    ? null
    : `the checkpoint ${name} from which this attempt resumes is not in ${root} on this node`;
}

/** More under one name are no evidence any longer. */
const numbersMax = 1_000;

/**
 * @param name below the root
 * @returns its new name; null: it is not there, or is a link
 * @throws {Error} with the kernel's code
 */
function quarantine(root: string, name: string): Promise<string | null> {
  return withPlaceOf(root, name, async (directory, last) => {
    const stat = await directory.identify(last);
    if (stat === null || !(stat.isFile() || stat.isDirectory())) return null;
    for (let number = 1; number <= numbersMax; number += 1) {
      const aside = number === 1 ? `${last}.corrupt` : `${last}.${number}.corrupt`;
      if ((await directory.identify(aside)) !== null) continue;
      await directory.rename(last, aside);
      return name.slice(0, name.length - last.length) + aside;
    }
    throw new Error(`${numbersMax} corrupt checkpoints of that name exist already; delete some`);
  });
}

/** @returns whether a checkpoint is there to be read: a file or a directory, reached without following a link */
async function isThere(root: string, name: string): Promise<boolean> {
  try {
    return await withPlaceOf(root, name, async (directory, last) => {
      const stat = await directory.identify(last);
      return stat?.isFile() === true || stat?.isDirectory() === true;
    });
  } catch {
    return false;
  }
}
