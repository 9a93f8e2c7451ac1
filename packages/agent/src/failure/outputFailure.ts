/**
 * What the last part of a task's output says of its failure, and whether that is the beginning of the trouble or follows
 * from the end of another rank. A program whose peer has died fails too, often louder and sometimes sooner than the one
 * that began it: blaming it would send people to the wrong node.
 *
 * Python's tracebacks end in `package.Error: words`; torchrun sums up with `Root Cause (first observed failure)` (torch
 * /distributed/elastic/multiprocessing/api.py); NCCL's watchdog and gloo speak for themselves.
 */
import { oneLine, plainText } from './oneLine.ts';

export interface OutputFailure {
  readonly consequence: boolean;
  /** Global rank. null: it is not said. */
  readonly rank: number | null;
  readonly message: string;
}

/** Enough for the tracebacks of a node's ranks and torchrun's summary; bounded, because output is not. */
export const tailBytesMax = 256 * 1024;

/** Said by those who were left behind. */
const consequences: readonly RegExp[] = [
  /connection (?:was )?(?:reset|closed|refused|aborted)(?: by (?:the )?(?:remote )?(?:peer|host))?/i,
  /broken pipe|socket closed|read error.*timed out|failed to recv, got 0 bytes|recvvalue failed/i,
  /ncclRemoteError|remote process exit(?:ed|ing)|communicator was aborted/i,
  /watchdog caught collective operation timeout|some nccl operations have failed or timed out/i,
  /timed out waiting \d+ ?ms for (?:send|recv) operation|application timeout caused pair closure/i,
  /signalexception|got signal: (?:15|2)\b|received (?:15|2) death signal|closing signal sig(?:term|int)/i,
  /rendezvousconnectionerror|rendezvousclosederror|rendezvous.*(?:closed|shut ?down)/i,
  /^(?:\S+\.)?KeyboardInterrupt\b/,
];

/** `ValueError: x`, `torch.cuda.OutOfMemoryError: x`, with the prefixes that launchers put before a worker's lines. */
const pythonError =
  /^(?:\[(?:[a-z]*)(\d+)\]:?\s*)?((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure))(?:: |$)/;
/** These only report the failure of another process. */
const reporters = /(?:ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException)$/;
const watchdog = /\[rank ?(\d+)\].*watchdog caught collective operation timeout.*/i;
/** How torchrun tells that it was told to stop, in its output and in its error file: not why. */
const stopNotice = /\bSignalException: Process \d+ got signal: (?:15|2)\b/;
const killedWorker = /signal \d+ \(SIG\w+\) received by pid \d+|exits? with return code = -?\d+/i;

/** @param tail the end of the output; its first line may be cut */
export function readOutputFailure(tail: string): OutputFailure | null {
  const lines = plainText(tail).split('\n');
  const { summary, diedOfSignal } = elasticSummary(lines) ??
    workerDeath(lines) ?? { summary: null, diedOfSignal: false };
  const said = lines.map(errorOf).filter((each) => each !== null);
  // Told to stop after a worker had failed, torchrun says so last and loudest.
  const errors = summary === null ? said : said.filter(({ message }) => !isStopNotice(message));
  const root = errors.find((each) => !each.consequence);
  if (root !== undefined) return { ...root, rank: root.rank ?? summary?.rank ?? null };
  // A worker that was killed says nothing itself: what torchrun says of it stands above what its peers say.
  if (summary !== null && !summary.consequence && diedOfSignal) return summary;
  const [first] = errors;
  if (first !== undefined) return { ...first, rank: first.rank ?? summary?.rank ?? null };
  return summary;
}

function errorOf(line: string): OutputFailure | null {
  const timeout = watchdog.exec(line);
  if (timeout !== null) return { consequence: true, rank: Number(timeout[1]), message: oneLine(line) };
  const match = pythonError.exec(line);
  if (match === null || reporters.test(match[2] ?? '')) return null;
  const rank = match[1] === undefined || !line.startsWith('[rank') ? null : Number(match[1]);
  return { consequence: isConsequence(line), rank, message: oneLine(line) };
}

/** Does this line only tell of the end of another process? */
export function isConsequence(line: string): boolean {
  return consequences.some((pattern) => pattern.test(line));
}

/** Does this line only tell that torchrun was told to stop? Nobody asks it to unless something was over already. */
export function isStopNotice(line: string): boolean {
  return stopNotice.test(line);
}

interface ElasticSummary {
  readonly summary: OutputFailure;
  /** The worker that failed first, without a word of its own. */
  readonly diedOfSignal: boolean;
}

/** Of the last summary there is: `rank : 1 (local_rank: 1)`, `exitcode : -9 (pid: 123)`, `traceback : Signal 9 …`. */
function elasticSummary(lines: readonly string[]): ElasticSummary | null {
  const start = lines.findLastIndex((line) => line.includes('Root Cause (first observed failure)'));
  if (start < 0) return null;
  const fields = new Map<string, string>();
  for (const line of lines.slice(start + 1, start + 14)) {
    const [, name, value] = /^\s*(rank|exitcode|traceback|error_file)\s*:\s*(.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined && !fields.has(name)) fields.set(name, value.trim());
  }
  const rank = numberAt(fields.get('rank'));
  const exitCode = numberAt(fields.get('exitcode'));
  if (exitCode === null) return null;
  const traceback = fields.get('traceback') ?? '';
  // 15 is how torchrun ends the workers beside the one that failed, and how we end all of it.
  const consequence = exitCode === -15 || isConsequence(traceback);
  const says = killedWorker.test(traceback) ? traceback : `exit code ${exitCode}`;
  const message = oneLine(rank === null ? says : `rank ${rank}: ${says}`);
  return { summary: { consequence, rank, message }, diedOfSignal: exitCode < 0 };
}

/**
 * What torchrun says as soon as it has seen a worker fail: `… multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid:
 * 4085) of binary: /usr/bin/python3`. Its summary comes later, or never, if it is ended before.
 */
export const workerDeathLine =
  /failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: \d+\) of (?:binary|fn): /;

function workerDeath(lines: readonly string[]): ElasticSummary | null {
  const match = lines.map((line) => workerDeathLine.exec(line)).find((each) => each !== null);
  if (match === undefined) return null;
  const exitCode = Number(match[1]);
  const how = exitCode < 0 ? `ended by signal ${-exitCode}` : `exit code ${exitCode}`;
  const summary = {
    consequence: exitCode === -15,
    rank: null,
    message: `local rank ${match[2]}: ${how}`,
  };
  return { summary, diedOfSignal: exitCode < 0 };
}

function numberAt(text: string | undefined): number | null {
  const match = /^-?\d+/.exec(text ?? '');
  return match === null ? null : Number(match[0]);
}
