/** What has been said once of a task's output, over restarts too: an empty file beside it. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskRef } from '@muster/common/ids';

/** `truncated`: some of it was dropped; `throttled`: the task writes faster than it may. */
export type OutputLossKind = 'truncated' | 'throttled';

/** @returns whether it is the first time */
export async function noteOnce(
  directory: string,
  { attempt, nodeRank }: Omit<TaskRef, 'jobId'>,
  what: OutputLossKind,
): Promise<boolean> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  try {
    await writeFile(join(directory, `${attempt}.${nodeRank}.${what}`), '', { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}
