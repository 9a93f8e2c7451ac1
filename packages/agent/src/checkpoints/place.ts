/**
 * Whether this agent can look after the checkpoints in a directory. As a service it lives in a sandbox, which may hide what
 * its tasks see, or show it read-only: then nothing is resumed from, or nothing deleted, and the job itself notices nothing.
 */
import { access, constants, open, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '@muster/checkpoints/directories';
import type { Fence } from '../drivers/driver.ts';
import { type Mount, mountOf } from '../host/mounts.ts';
import { realPaths } from '../probes/realPaths.ts';
import { reasonOf } from './checkpointPlace.ts';

export interface PlaceParts {
  /** The node as its tasks see it. */
  readonly fence: Pick<Fence, 'realPaths'>;
  readonly mounts: () => readonly Mount[];
}

/** Where the units of systemd set what the agent sees. */
const setting = 'as checkpoint_root in /etc/muster/agent.yaml, then `muster install agent`';

/**
 * @param root absolute; need not exist yet
 * @param changes whether the agent must delete checkpoints of the job
 * @returns why the agent cannot do its work there, as a sentence; null: it can
 */
export async function placeProblem(
  root: string,
  changes: boolean,
  { fence, mounts }: PlaceParts,
): Promise<string | null> {
  const ancestors = ancestorsOf(root);
  const tasks = await fence.realPaths(ancestors);
  // After that: what the tasks saw then is there now, also when another node of the job has just made it.
  const own = await realPaths(ancestors);
  const hidden = ancestors.find((_, index) => own[index] === null && tasks[index] !== null);
  if (hidden !== undefined) {
    return (
      `the agent of this node does not see ${hidden}, which its tasks see, so no checkpoint in ${root} would be used: ` +
      `name it ${setting}`
    );
  }
  const present = own.find((path) => path !== null) ?? null;
  if (!changes || present === null || !(await isReadOnly(present))) return null;
  return `the agent of this node cannot apply \`keep_last\`: ${root} ${readOnlyWords(present, mounts())}`;
}

/**
 * Of a directory that the agent is configured to look after.
 * @returns what is wrong with it, without the directory: `is not there …`; null: it can be written to
 */
export async function rootProblem(root: string, mounts: () => readonly Mount[]): Promise<string | null> {
  const trial = join(root, `.muster-write-check-${process.pid}`);
  try {
    // Exclusively: what is there already may be a link that somebody else has made.
    const file = await open(trial, 'wx', 0o600).catch((error: unknown) => {
      if (errorCode(error) !== 'EEXIST') throw error;
    });
    await file?.close();
    await unlink(trial);
    return null;
  } catch (error) {
    return await writeProblem(root, error, mounts);
  }
}

/** @param error of a try to write below `directory` */
export async function writeProblem(
  directory: string,
  error: unknown,
  mounts: () => readonly Mount[],
): Promise<string> {
  switch (errorCode(error)) {
    case 'EROFS':
      return readOnlyWords((await realPaths([directory]))[0] ?? directory, mounts());
    case 'ENOSPC':
    case 'EDQUOT':
      return `has no space left for the index of its checkpoints: ${reasonOf(error)}`;
    case 'ENOENT':
      return `does not exist, or is hidden from the agent's service: name it ${setting}`;
    default:
      return `cannot be written to: ${reasonOf(error)}`;
  }
}

function readOnlyWords(path: string, mounts: readonly Mount[]): string {
  const mount = mountOf(path, mounts);
  return mount === null || mount.readOnly
    ? 'is on a file system that is read-only'
    : `is read-only for the agent's service, and not on the node: name it ${setting}`;
}

async function isReadOnly(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return false;
  } catch (error) {
    return errorCode(error) === 'EROFS';
  }
}

/** `/a/b`, `/a`, `/` */
function ancestorsOf(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...ancestorsOf(above)];
}
