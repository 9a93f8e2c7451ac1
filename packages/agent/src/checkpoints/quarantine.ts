/**
 * Sets a corrupt checkpoint aside: kept for whoever wants to know what happened to it, under a name that no program
 * resumes from. Only while nothing of the job runs.
 */
import { withPlaceOf } from './directoryHandle.ts';

/** More under one name are no evidence any more. */
const numbersMax = 1_000;

/**
 * @param name below the root
 * @returns its new name; null: it is not there, or is a link
 * @throws {Error} with the kernel's code
 */
export function quarantine(root: string, name: string): Promise<string | null> {
  return withPlaceOf(root, name, async (directory, last) => {
    const stat = await directory.statOf(last);
    if (stat === null || !(stat.isFile() || stat.isDirectory())) return null;
    for (let number = 1; number <= numbersMax; number += 1) {
      const aside = number === 1 ? `${last}.corrupt` : `${last}.${number}.corrupt`;
      if ((await directory.statOf(aside)) !== null) continue;
      await directory.rename(last, aside);
      return name.slice(0, name.length - last.length) + aside;
    }
    throw new Error(`${numbersMax} corrupt checkpoints of that name exist already; delete some`);
  });
}

/** @returns whether a checkpoint is there to be read: a file or a directory, reached without following a link */
export async function isThere(root: string, name: string): Promise<boolean> {
  try {
    return await withPlaceOf(root, name, async (directory, last) => {
      const stat = await directory.statOf(last);
      return stat?.isFile() === true || stat?.isDirectory() === true;
    });
  } catch {
    return false;
  }
}
