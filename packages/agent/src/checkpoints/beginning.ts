/**
 * The beginning of an attempt in its checkpoint directory: what stands there is noted in the index, before anything of the job
 * runs, so that all that appears later is known to be the attempt's.
 */
import type { NamePattern } from '@muster/checkpoints/namePattern';
import { scanCheckpoints } from '@muster/checkpoints/scan';
import { externalCheckpoint } from '@muster/common/checkpoints';
import type { Assignment } from '../taskFacts/assignment.ts';
import { type Belongings, belongingsOf } from './belonging.ts';
import { completionMarkerIn } from './checkpointPlace.ts';
import { beforeMax, type CheckpointIndex, type MarkerBefore, readIndex, writeIndex } from './indexFile.ts';

export interface Beginning extends Belongings {
  readonly marker: MarkerBefore;
}

export interface DirectoryToBeginIn {
  readonly root: string;
  readonly pattern: NamePattern | null;
  /** Nothing but checkpoints of this job is in it. */
  readonly isOwn: boolean;
}

/**
 * Notes in the index what stands in the directory before an attempt. May be repeated until the attempt runs.
 * @param nowMs wall clock, which agents of earlier releases need in the index
 * @returns null: the directory cannot be read. In one that is missing nothing stands
 */
export async function beginIn(
  { root, pattern, isOwn }: DirectoryToBeginIn,
  { task, checkpointJobId: chain, resume }: Assignment,
  nowMs: number,
): Promise<Beginning | null> {
  const index = await readIndex(root);
  const { candidates, problem } = await scanCheckpoints(root, { pattern, candidatesMax: beforeMax });
  const isMissing = problem === 'does not exist';
  if (problem !== null && !isMissing && candidates.length === 0) return null;
  const resumesFrom = resume === null || externalCheckpoint(resume.name) !== null ? null : resume.name;
  const sorted = belongingsOf(index, candidates, { chain, resumesFrom });
  const belongings = isOwn ? ownOnly(sorted) : sorted;
  const identity = (await completionMarkerIn(root))?.identity ?? null;
  const marker = { job: task.jobId, attempt: task.attempt, identity };
  const beginning = { ...belongings, marker };
  // An empty directory of the node's own is removed after the job.
  const isUnused = isOwn && candidates.length === 0 && identity === null && index === null;
  // Where others have seen checkpoints of the chain, and this node sees nothing of it, its storage may not be mounted.
  const isBlind =
    resumesFrom !== null && index?.job !== chain && !candidates.some(({ name }) => name === resumesFrom);
  if (isMissing || isUnused || isBlind) return beginning;
  const own = index?.job === chain ? index : null;
  const next: CheckpointIndex = {
    version: 1,
    job: chain,
    by: own?.by ?? task.jobId,
    sinceMs: own?.sinceMs ?? nowMs,
    ...beginning,
    checkpoints: own?.checkpoints ?? [],
    quarantined: own?.quarantined ?? [],
  };
  // The beginning is in memory too, and the look that writes the index next tells what keeps it from being written.
  if (JSON.stringify(next) !== JSON.stringify(index)) await writeIndex(root, next, true).catch(() => {});
  return beginning;
}

function ownOnly({ before, found }: Belongings): Belongings {
  const all = [...before.map(({ name, version }) => ({ name, version })), ...found];
  return { before: [], found: all };
}
