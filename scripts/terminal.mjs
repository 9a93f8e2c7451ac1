// What the scripts of this folder say to a person: one line per step, rewritten in place on a terminal.
// Plain JavaScript without dependencies, because setup.mjs needs it before anything is installed.

const onTerminal = process.stderr.isTTY === true;

/** An error whose message is all a person needs: printed alone, without a stack trace. */
export class Stop extends Error {
  /**
   * @param {string} message what is wrong, and what to do about it
   * @param {number} [exitCode] 1: it was tried and failed. 2: something is missing.
   */
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** @param {number} startedAtMs a value of performance.now() */
export function secondsSince(startedAtMs) {
  return `${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`;
}

/**
 * Runs `work` behind one line that ends in the time it took, or in `failed`.
 * @template T
 * @param {string} title
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const startedAtMs = performance.now();
  const show = () => process.stderr.write(`\r${title} … ${secondsSince(startedAtMs)}`);
  if (!onTerminal) process.stderr.write(`${title} … `);
  const timer = onTerminal ? setInterval(show, 200) : undefined;
  try {
    const result = await work();
    process.stderr.write(
      onTerminal ? `\r${title}: ${secondsSince(startedAtMs)} \n` : `${secondsSince(startedAtMs)}\n`,
    );
    return result;
  } catch (error) {
    process.stderr.write(onTerminal ? `\r${title}: failed \n` : 'failed\n');
    throw error;
  } finally {
    clearInterval(timer);
  }
}

/**
 * The last lines of a text, for error messages.
 * @param {string} text
 * @param {number} [lines]
 */
export function tail(text, lines = 20) {
  return text.trimEnd().split('\n').slice(-lines).join('\n');
}

/**
 * Ends the process with the exit code of `main`. A Stop is shown as its message; anything else is a bug and shows its
 * stack. Not to be awaited at the top of a module that others import: they would wait for each other for ever.
 * @param {() => Promise<number>} main
 */
export async function exitWith(main) {
  try {
    process.exitCode = await main();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}
