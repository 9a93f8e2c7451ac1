/**
 * Takes a checkpoint away for good. First it is moved aside within its own directory, under a name that no program takes
 * for a checkpoint: one that is half deleted, after a crash too, must never pass for whole. What was moved aside is
 * deleted by descriptors; links are removed and never followed, and nothing on another mount is touched. A program may write
 * over a name at any moment: what is deleted is the version that was meant, or nothing.
 */
import { Directory, errorCode, withDirectory } from '@muster/checkpoints/directories';
import { versionOf } from '@muster/checkpoints/listing';
import { type Mount, mountOf } from '../host/mounts.ts';
import { withPlaceOf } from './checkpointPlace.ts';

const asidePrefix = '.muster-deleting-';

/** Deeper than any program nests what it saves; each level holds a descriptor. */
const depthMax = 32;

/** Why it was left as it is, to follow its name. */
class NotRemovable extends Error {
  override readonly name = 'NotRemovable';
}

/**
 * @param version of the checkpoint to delete, as of a scan
 * @param mounts all that this process sees
 * @returns true: it is gone, or was not there; false: the name holds another version by now, which is kept
 * @throws {Error} what kept it from being deleted, to follow its name
 */
export async function removeCheckpoint(
  root: string,
  name: string,
  version: string,
  mounts: readonly Mount[],
): Promise<boolean> {
  return withPlaceOf(root, name, async (directory, last) => {
    const stat = await directory.identify(last);
    if (stat === null) return true;
    if (!stat.isFile() && !stat.isDirectory()) throw new NotRemovable('is neither a file nor a directory');
    const path = `${await directory.realPath()}/${last}`;
    const isMounted = mounts.some(
      ({ mountPoint }) => mountPoint === path || mountPoint.startsWith(`${path}/`),
    );
    if (isMounted || Number(stat.dev) !== (await directory.stat()).dev) {
      throw new NotRemovable('contains a mount point');
    }
    if ((await versionOf(directory, last)) !== version) return false;
    const aside = `${asidePrefix}${version}`;
    // One with the same version was moved there, and its deletion did not come to an end.
    await deleteEntry(directory, aside, Number(stat.dev), depthMax);
    await directory.rename(last, aside);
    // Written over between the look and the move. Where its program has saved there again since, it is rid of it anyway.
    const isMeant = (await versionOf(directory, aside)) === version;
    if (!isMeant && (await directory.identify(last)) === null) await directory.rename(aside, last);
    else await deleteEntry(directory, aside, Number(stat.dev), depthMax);
    return isMeant;
  });
}

/**
 * Completes deletions that a crash has interrupted.
 * @param levels of directories below the root in which checkpoints lie
 */
export async function sweepAside(root: string, levels: number): Promise<void> {
  await withDirectory(await Directory.open(root), (held) => sweep(held, levels));
}

async function sweep(directory: Directory, levels: number): Promise<void> {
  const { dev } = await directory.stat();
  const below: string[] = [];
  for await (const { name } of directory.entries()) {
    if (name.startsWith(asidePrefix)) await deleteEntry(directory, name, dev, depthMax);
    else if (levels > 0 && !name.startsWith('.')) below.push(name);
  }
  for (const name of below) {
    const stat = await directory.identify(name);
    if (stat?.isDirectory() !== true || Number(stat.dev) !== dev) continue;
    await withDirectory(await directory.below(name), (held) => sweep(held, levels - 1));
  }
}

/** @param dev the file system that all of it has to lie on */
async function deleteEntry(directory: Directory, name: string, dev: number, depth: number): Promise<void> {
  const stat = await directory.identify(name);
  if (stat === null) return;
  if (!stat.isDirectory()) {
    await unlessGone(directory.unlink(name));
    return;
  }
  if (depth === 0) throw new NotRemovable(`holds directories more than ${depthMax} deep`);
  await withDirectory(await directory.below(name), async (held) => {
    // Looked at through its descriptor: that is what is being emptied, whatever its name leads to by now.
    if ((await held.stat()).dev !== dev) throw new NotRemovable('contains a mount point');
    for await (const { name: each } of held.entries()) await deleteEntry(held, each, dev, depth - 1);
  });
  await unlessGone(directory.rmdir(name));
}

async function unlessGone(done: Promise<void>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

/** Other nodes see the same files under this path. */
export function isShared(path: string, mounts: readonly Mount[]): boolean {
  return mountOf(path, mounts)?.remote === true;
}
