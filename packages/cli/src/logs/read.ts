/**
 * Reading and following the log of a job across restarts of the coordinator: every byte once, in order per rank, and a note on
 * what is missing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MusterError } from '@muster/common/errors';
import { isTerminal } from '@muster/common/states';
import type { JobView, LogPiece } from '@muster/common/views';
import type { LogPosition, MusterApi } from '@muster/common/wire/client';
import { printable } from '../output/text.ts';
import { bytesText, durationText } from '../output/times.ts';
import { outagePatienceMs, type Session } from '../session.ts';
import type { LogPrinter } from './printer.ts';

/** A stream that ended before the job did: by a coordinator that shuts down, or between two attempts. */
const reopenDelayMs = 200;

export interface LogSelection {
  readonly jobId: string;
  readonly attempt?: number;
  readonly nodeRank?: number;
  readonly tailLines?: number;
  readonly follow: boolean;
}

export interface ReadOptions {
  readonly printer: LogPrinter;
  /** Before a piece is printed. */
  onPiece(piece: LogPiece): void;
  onAway(error: MusterError): void;
  readonly abort: AbortSignal;
}

/**
 * Resolves when everything selected has been printed: when following, once the attempt (or the job) has ended.
 * @returns a piece for each rank of which there is more, on a node that does not answer
 * @throws {MusterError} `not_found`: output that was still to be read was removed. What was read before is printed
 */
export async function readLogs(
  session: Session,
  selection: LogSelection,
  options: ReadOptions,
): Promise<readonly LogPiece[]> {
  const { printer, onPiece, onAway, abort } = options;
  const positions = new Map<string, LogPosition>();
  const missing: LogPiece[] = [];
  const { follow, tailLines, ...source } = selection;
  const reading = session.retrying(
    async (api, alive) => {
      for (;;) {
        // `positions` determine where to continue. To ask for the last lines once more would skip lines written in between.
        missing.length = 0;
        // To name where it was read to shows the coordinator what has been removed since.
        const tail = tailLines === undefined ? {} : { tailLines };
        const place = positions.size === 0 ? tail : fromOf(positions);
        for await (const piece of api.readLogs({ ...source, ...place, follow }, abort)) {
          alive();
          if (piece.missing !== null) {
            missing.push(piece);
            continue;
          }
          const fresh = freshPart(piece, positions);
          if (fresh === null) continue;
          onPiece(fresh);
          await printer.print(fresh);
        }
        if (!follow || abort.aborted || (await isComplete(api, selection))) return;
        await sleep(reopenDelayMs, undefined, { signal: abort });
      }
    },
    { patienceMs: outagePatienceMs, onAway, abort },
  );
  try {
    await reading;
  } finally {
    await printer.finish();
  }
  return missing;
}

/** More ranks than a coordinator takes positions of are read from the beginning, and what was printed is skipped. */
const positionsMax = 1_024;

function fromOf(positions: ReadonlyMap<string, LogPosition>): { readonly from?: readonly LogPosition[] } {
  return positions.size > positionsMax ? {} : { from: [...positions.values()] };
}

/** What of a piece has not been printed yet; null when nothing. Remembers it as printed. */
function freshPart(piece: LogPiece, positions: Map<string, LogPosition>): LogPiece | null {
  const { attempt, nodeRank } = piece;
  const key = `${attempt}.${nodeRank}`;
  const printed = positions.get(key)?.offset ?? piece.offset;
  const known = Math.max(0, printed - piece.offset);
  const offset = Math.max(printed, piece.offset + piece.data.length);
  positions.set(key, { attempt, nodeRank, offset });
  if (known === 0) return piece;
  if (known >= piece.data.length && !piece.complete) return null;
  return { ...piece, offset: piece.offset + known, data: piece.data.subarray(known) };
}

/** A coordinator that shuts down ends streams too; only the job's state shows that there is nothing more to follow. */
async function isComplete(api: MusterApi, { jobId, attempt }: LogSelection): Promise<boolean> {
  const job: JobView = await api.getJob(jobId);
  if (isTerminal(job.state)) return true;
  return (
    attempt !== undefined && job.attempts.some(({ number, state }) => number === attempt && state === 'ended')
  );
}

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
      ? 'the coordinator has had no contact with it since it started'
      : `it is silent for ${durationText(missing.silentForMs)}`;
  return `${printable(missing.node)} has not sent the end of ${whose} (${bytesText(missing.bytes)}); ${silence}`;
}
