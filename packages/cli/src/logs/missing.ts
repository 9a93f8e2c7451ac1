/** What to say about output that did not come. Pure. */
import type { LogPiece } from '@muster/common/views';
import { printable } from '../output/text.ts';
import { bytesText, durationText } from '../output/times.ts';

/** A line for each rank of which there is more, and how to get it; nothing when all is there. */
export function missingText(missing: readonly LogPiece[], jobId: string, programName: string): string {
  const lines = missing.map(lineOf);
  if (lines.length > 0) lines.push(`Once the node is back, see the rest with: ${programName} logs ${jobId}`);
  return lines.map((line) => `${line}\n`).join('');
}

function lineOf({ attempt, nodeRank, missing }: LogPiece): string {
  if (missing === null) return '';
  const whose = `rank ${nodeRank}'s output${attempt === 1 ? '' : ` of attempt ${attempt}`}`;
  const silence =
    missing.silentForMs === null
      ? 'it has not been heard of since the coordinator started'
      : `it is silent for ${durationText(missing.silentForMs)}`;
  return `${printable(missing.node)} has not sent the end of ${whose} (${bytesText(missing.bytes)}); ${silence}`;
}
