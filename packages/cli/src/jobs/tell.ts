/** Tells on stderr what becomes of a job, in dim lines between those of its output. */
import type { JobView } from '@muster/common/views';
import type { Context } from '../context.ts';
import { resetColours } from '../logs/terminalFilter.ts';
import { coloursFor } from '../output/colours.ts';
import type { Progress } from '../output/progress.ts';
import { printable } from '../output/text.ts';
import { type Reported, transitions } from './transitions.ts';

/** @returns to be called with the job at each look */
export function transitionReporter(
  { io, environment }: Context,
  progress: Progress,
  from: Reported,
): (job: JobView) => void {
  const { dim } = coloursFor(io.stderr, environment);
  // Output of one rank may have left a colour switched on, or text that nobody sees.
  const reset = io.stdout.isTerminal && io.stderr.isTerminal ? resetColours : '';
  let known = from;
  return (job) => {
    const { lines, reported } = transitions(job, known);
    known = reported;
    if (lines.length === 0) return;
    progress.clear();
    // Whoever closes stderr is told nothing more; the command itself goes on.
    const text = lines.map((line) => `${reset}${dim(`— ${printable(line)} —`)}\n`).join('');
    void io.stderr.write(text).catch(() => {});
  };
}
