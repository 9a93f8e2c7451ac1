// Programs that make a release; their failures are explained.
import { capture } from '../processes.mjs';
import { Stop, tail } from '../terminal.mjs';

/**
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Readonly<Record<string, string>> }} options env: more than this process has
 * @param {AbortSignal} interrupted
 * @returns {Promise<string>} what it printed
 * @throws {Stop}
 */
export async function run(program, args, { cwd, env }, interrupted) {
  const variables = { ...process.env, ...env, LC_ALL: 'C' };
  const { code, output } = await capture(program, args, { cwd, env: variables, signal: interrupted });
  interrupted.throwIfAborted();
  if (code === 127)
    throw new Stop(
      `${program} is not on PATH. Install it (Debian: apt-get install tar gzip dpkg npm), then run this again.`,
      2,
    );
  if (code !== 0) throw new Stop(`${program} failed:\n${tail(output)}`);
  return output;
}
