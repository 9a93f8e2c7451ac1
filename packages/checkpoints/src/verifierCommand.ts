/** How the verifier is started: unless it is urgent, behind everything else that wants a processor or a disk. */

import { execFile } from 'node:child_process';
import { setPriority } from 'node:os';
import { findProgram } from '@muster/common/files';
import { closedNodeFlags } from '@muster/common/nodeFlags';

const lowestPriority = 19;
/** Whatever PATH the agent was started with. */
const programFolders = '/usr/bin:/bin';

/**
 * `nice` becomes the verifier, so that each of its threads is behind the others. The heap holds some JSON; contents are
 * read into a buffer outside of it.
 * @param program absolute path of the verifier's bundle, or of `verifier/main.ts`
 */
export function verifierCommand(
  nodePath: string,
  program: string,
  { isUrgent }: { readonly isUrgent: boolean },
): string[] {
  const nice = findProgram('nice', programFolders);
  const behind = nice === null || isUrgent ? [] : [nice, '-n', String(lowestPriority)];
  return [...behind, nodePath, ...closedNodeFlags, '--max-old-space-size=512', program];
}

/**
 * For where `nice` is missing, and for the disk: idle, only when nobody else wants it. Not as the command that starts it,
 * because a kernel that refuses would then keep it from starting; it works without, at the price of others.
 */
export function putBehindOthers(pid: number): void {
  try {
    setPriority(pid, lowestPriority);
  } catch {
    // It has ended already.
  }
  const ionice = findProgram('ionice', programFolders);
  if (ionice !== null) execFile(ionice, ['-c', '3', '-p', String(pid)], () => {});
}
