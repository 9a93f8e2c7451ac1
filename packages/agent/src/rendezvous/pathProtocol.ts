/**
 * What agents send to each other over a held port. A peer sends one line and gets one line back:
 *
 *     muster-path/1 here      <job id> <attempt> <rank of the asker> <rank of the asked>
 *     muster-path/1 preflight <job id> …        where does the preflight's rendezvous take place? (of rank 0)
 *     muster-path/1 load      <job id> … <bytes>    as many bytes follow, and are answered when all are there
 *
 *     muster-path/1 here <job id> <attempt> <rank of the asked> <number>
 *     muster-path/1 not-a-peer
 *
 * The number is the port of the preflight, the bytes that came, or 0. An attempt's id is all there is to know: a path is
 * tried before anything of the job runs, and nothing that is secret is sent.
 */
import { isJobId, type TaskRef } from '@muster/common/ids';

export type Question =
  | { readonly kind: 'here' }
  | { readonly kind: 'preflight' }
  | { readonly kind: 'load'; readonly bytes: number };

export interface Asked {
  /** The task that is asked. */
  readonly task: TaskRef;
  readonly from: number;
  readonly question: Question;
}

export type Answer =
  | { readonly kind: 'here'; readonly task: TaskRef; readonly number: number }
  /** It is no peer of this attempt. */
  | { readonly kind: 'not_a_peer' };

const protocol = 'muster-path/1';

/** Far above the longest line; a peer that sends more without an end of line is none. */
export const pathLineBytesMax = 256;
/** Of one `load`. At 1 Gbit/s half a second. */
export const loadBytesMax = 64 * 1024 * 1024;

export function formatQuestion({ task, from, question }: Asked): string {
  const { jobId, attempt, nodeRank } = task;
  const bytes = question.kind === 'load' ? ` ${question.bytes}` : '';
  return `${protocol} ${question.kind} ${jobId} ${attempt} ${from} ${nodeRank}${bytes}\n`;
}

/** @param line without its end; @returns null: nothing that a peer would send */
export function parseQuestion(line: string): Asked | null {
  const match =
    /^muster-path\/1 (here|preflight|load) (\S+) (\d{1,9}) (\d{1,5}) (\d{1,5})(?: (\d{1,9}))?$/.exec(line);
  const [, kind, jobId = '', attempt, from, nodeRank, bytes] = match ?? [];
  if (!isJobId(jobId)) return null;
  const asked = {
    task: { jobId, attempt: Number(attempt), nodeRank: Number(nodeRank) },
    from: Number(from),
  };
  if (kind === 'load') {
    const count = Number(bytes ?? 0);
    return count >= 1 && count <= loadBytesMax
      ? { ...asked, question: { kind: 'load', bytes: count } }
      : null;
  }
  if (bytes !== undefined) return null;
  return { ...asked, question: { kind: kind === 'preflight' ? 'preflight' : 'here' } };
}

export function formatAnswer(answer: Answer): string {
  if (answer.kind === 'not_a_peer') return `${protocol} not-a-peer\n`;
  const { jobId, attempt, nodeRank } = answer.task;
  return `${protocol} here ${jobId} ${attempt} ${nodeRank} ${answer.number}\n`;
}

export function parseAnswer(line: string): Answer | null {
  if (line === `${protocol} not-a-peer`) return { kind: 'not_a_peer' };
  const match = /^muster-path\/1 here (\S+) (\d{1,9}) (\d{1,5}) (\d{1,9})$/.exec(line);
  const [, jobId = '', attempt, nodeRank, number] = match ?? [];
  if (!isJobId(jobId)) return null;
  return {
    kind: 'here',
    task: { jobId, attempt: Number(attempt), nodeRank: Number(nodeRank) },
    number: Number(number),
  };
}
