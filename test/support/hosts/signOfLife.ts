/**
 * Checks, after the fact, what the processes of jobs wrote about themselves (`programs/signOfLife.py`). The files know
 * nothing of what coordinator and agents believe: they show which process executed instructions, and when.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The process executed instructions at this moment. */
export interface Beat {
  /** CLOCK_BOOTTIME, the same on all hosts of one kernel. */
  readonly atMs: number;
  readonly job: string;
  readonly attempt: number;
  readonly rank: number;
  readonly pid: number;
}

/** What the test knows of a job besides. */
export interface KnownEnds {
  /** Ranks of nodes whose lease ran out, so that nothing but time can tell that they are not running. */
  readonly fenced?: readonly { readonly attempt: number; readonly rank: number }[];
  /** CLOCK_BOOTTIME at which the test saw that the job had ended. */
  readonly endSeenMs?: number;
}

/** Between the last instruction of a fenced attempt and the first of the next: M, the margin of a lease. */
const fenceGapMs = 2_000;

/** Of all jobs that wrote into a directory, in no order. @throws {Error} for a line that is none */
export function readBeats(directory: string): readonly Beat[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.beats'))
    .flatMap((name) => parseBeats(readFileSync(join(directory, name), 'utf8'), name));
}

/** A last line without its end is being written. */
export function parseBeats(text: string, name: string): readonly Beat[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [, atMs, job = '', attempt, rank, pid] = /^(\d+) (\S+) (\d+) (\d+) (\d+)$/.exec(line) ?? [];
      if (atMs === undefined) throw new Error(`${name}: "${line}" is no sign of life`);
      return { atMs: Number(atMs), job, attempt: Number(attempt), rank: Number(rank), pid: Number(pid) };
    });
}

interface Life {
  readonly attempt: number;
  readonly first: Beat;
  readonly last: Beat;
}

/**
 * What of a job's history must not have happened: two attempts alive at the same time, an attempt within the margin of a
 * fence, an instruction after the end. A job of which nothing is recorded is a violation too: it would prove nothing.
 */
export function violations(beats: readonly Beat[], job: string, known: KnownEnds = {}): readonly string[] {
  const own = beats.filter((beat) => beat.job === job);
  const lives = livesOf(own);
  if (lives.length === 0) return [`${job} left no sign of life`];
  const fenced = (known.fenced ?? []).flatMap(({ attempt, rank }) =>
    livesOf(own.filter((beat) => beat.attempt === attempt && beat.rank === rank)),
  );
  return [
    ...lives.flatMap((life) => overlaps(job, life, lives)),
    ...fenced.flatMap((life) => hastySuccessors(job, life, lives)),
    ...afterTheEnd(job, lives, known.endSeenMs),
  ];
}

/** By attempt number, from its first sign of life on any node to its last. */
function livesOf(beats: readonly Beat[]): readonly Life[] {
  const lives = new Map<number, Life>();
  for (const beat of beats) {
    const { first = beat, last = beat } = lives.get(beat.attempt) ?? {};
    lives.set(beat.attempt, {
      attempt: beat.attempt,
      first: beat.atMs < first.atMs ? beat : first,
      last: beat.atMs > last.atMs ? beat : last,
    });
  }
  return [...lives.values()].sort((a, b) => a.attempt - b.attempt);
}

/** With every later attempt: one can come back to life long after the one that followed it. */
function overlaps(job: string, { attempt, last }: Life, lives: readonly Life[]): string[] {
  return lives
    .filter((later) => later.attempt > attempt && later.first.atMs <= last.atMs)
    .map(
      (later) =>
        `${job}: attempt ${attempt} (${describe(last)}) was alive ${last.atMs - later.first.atMs} ms after attempt ` +
        `${later.attempt} (${describe(later.first)}) had begun`,
    );
}

function hastySuccessors(job: string, { attempt, last }: Life, lives: readonly Life[]): string[] {
  const gapMs = (later: Life) => later.first.atMs - last.atMs;
  return lives
    .filter((later) => later.attempt > attempt && gapMs(later) > 0 && gapMs(later) < fenceGapMs)
    .map(
      (later) =>
        `${job}: attempt ${later.attempt} (${describe(later.first)}) began ${gapMs(later)} ms after the last sign of life ` +
        `of attempt ${attempt} (${describe(last)}), which was fenced: less than ${fenceGapMs} ms`,
    );
}

function afterTheEnd(job: string, lives: readonly Life[], endSeenMs: number | undefined): string[] {
  return lives
    .filter(({ last }) => endSeenMs !== undefined && last.atMs > endSeenMs)
    .map(
      ({ attempt, last }) =>
        `${job}: attempt ${attempt} (${describe(last)}) was alive ${last.atMs - (endSeenMs ?? 0)} ms after the job had ended`,
    );
}

function describe({ rank, pid }: Beat): string {
  return `rank ${rank}, pid ${pid}`;
}

/** CLOCK_BOOTTIME now, in steps of 10 ms, rounded up: a sign of life from before is not later than this. */
export function boottimeMs(): number {
  const [seconds = ''] = readFileSync('/proc/uptime', 'utf8').split(' ');
  return Math.round(Number(seconds) * 1000) + 10;
}
