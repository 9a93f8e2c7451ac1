/**
 * How a process of Muster ends when its work is done: by `process.exit`, and not because nothing is open. Node 24 can wait for ever in
 * both cases (docs/decisions/ends-of-processes.md). It then closes what is open itself, and turns in a loop while a request to the
 * kernel or a peer has no answer, which is usual where connections broke. `process.exit` closes nothing. It waits for the threads on
 * which V8 compiles, and one of those may wait for this thread to collect garbage (https://github.com/nodejs/node/issues/54918).
 */

/** Shorter processes compile hardly anything beside the work, and somebody waits for each of them. */
const shortLifeMs = 2_000;
/** For V8 to finish compiling while this thread still collects garbage for it. */
const settleMs = 100;

/** @param ranForMs since the start of this process */
export function endProcess(exitCode: number, ranForMs = process.uptime() * 1_000): void {
  process.exitCode = exitCode;
  if (ranForMs < shortLifeMs) process.exit(exitCode);
  setTimeout(() => process.exit(exitCode), settleMs);
}
