/** The marker by which a program says that its training is done, whatever becomes of it afterwards. */
import { trainingCompleteName } from '@muster/checkpoints/names';
import { withPlaceOf } from './directoryHandle.ts';

/** Some file systems keep whole seconds, and FAT every other one. */
const granularityMs = 2_000;

/**
 * One from an earlier run must not end a job that was just started to go on from there.
 * @param startedAtMs wall clock: the start of the attempt
 */
export async function completedSince(root: string, startedAtMs: number): Promise<boolean> {
  try {
    const stat = await withPlaceOf(root, trainingCompleteName, (directory, last) => directory.statOf(last));
    return stat?.isFile() === true && Number(stat.mtimeMs) >= startedAtMs - granularityMs;
  } catch {
    return false;
  }
}
