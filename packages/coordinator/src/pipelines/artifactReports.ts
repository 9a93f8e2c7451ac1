/** What the output of a step's job says of its artifacts. It arrives after the end of the job, and is waited for. */
import type { JobId } from '@muster/common/ids';
import {
  type ArtifactReport,
  readArtifactReport,
  type WantedArtifact,
} from '@muster/pipelines/artifactScript';
import type { LogStore } from '../logs/logStore.ts';

/** Enough for the lines of a hundred outputs. */
const tailBytes = 64 * 1024;
const tailLines = 400;

/** @param attempt the newest of the job; its rank 0 handles artifacts */
export async function readStepReport(
  logs: Pick<LogStore, 'size' | 'read' | 'tailOffset'>,
  jobId: JobId,
  attempt: number,
  wanted: readonly WantedArtifact[],
): Promise<ArtifactReport> {
  const task = { jobId, attempt, nodeRank: 0 };
  const size = await logs.size(task);
  const pieces: Uint8Array[] = [];
  const start = Math.max(await logs.tailOffset(task, tailLines), size - tailBytes);
  for (let at = start; at < size; ) {
    const piece = await logs.read(task, at, size - at);
    if (piece.length === 0) break;
    pieces.push(piece);
    at += piece.length;
  }
  return readArtifactReport(Buffer.concat(pieces).toString('utf8'), wanted);
}
