/** When output of an attempt last arrived, by the times of its files: they outlive a restart. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isFileMissing, segmentName, segmentsIn } from './segments.ts';

/**
 * @param directory of the job's logs
 * @returns epoch milliseconds by the coordinator's clock; null: nothing has arrived, or nothing of it is kept
 */
export async function outputAtMs(directory: string, attempt: number): Promise<number | null> {
  const segments = (await segmentsIn(directory)).filter(
    // What is left of output that was removed is as old as its removal.
    ({ attempt: of, reason }) => of === attempt && reason !== 'budget' && reason !== 'removed',
  );
  const times = await Promise.all(
    segments.map((segment) => writtenAtMs(join(directory, segmentName(segment, segment)))),
  );
  return times.reduce((newest, at) => (at !== null && (newest === null || at > newest) ? at : newest), null);
}

/** null: it is empty, or gone by now. */
async function writtenAtMs(path: string): Promise<number | null> {
  try {
    const { size, mtimeMs } = await stat(path);
    return size === 0 ? null : Math.floor(mtimeMs);
  } catch (error) {
    if (isFileMissing(error)) return null;
    throw error;
  }
}
