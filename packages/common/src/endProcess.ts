/**
 * How a process of Muster ends when its work is done.
 *
 * Not by `process.exit` alone: that waits for the threads on which V8 compiles, and a thread whose memory has run out waits for this
 * one to collect garbage, so both wait for ever (https://github.com/nodejs/node/issues/54918). A process in which nothing is open
 * ends without `process.exit`, and V8 then releases those threads first. As long as its event loop runs, it collects for them too.
 */

/** For handles of libraries that are idle and still open. Long enough for what is being compiled, too short to be noticed. */
const idleHandlesMs = 100;

/** Ends this process with this exit code as soon as nothing is open any more, and after a tenth of a second in any case. */
export function endProcess(exitCode: number): void {
  process.exitCode = exitCode;
  setTimeout(() => process.exit(exitCode), idleHandlesMs).unref();
}
