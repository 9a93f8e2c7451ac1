import type { Clock } from '@muster/common/clock';
import type { Output } from '../io.ts';
import { fitText, printable } from './text.ts';
import { durationText } from './times.ts';

/** One line that is rewritten in place while something takes its time. Silent where there is no terminal. */
export interface Progress {
  show(text: string): void;
  /** Removes the line; call before anything else is printed. The next `show` brings it back. */
  clear(): void;
  /** Removes the line for good. */
  end(): void;
}

const repaintMs = 1_000;

export function startProgress(output: Output, clock: Clock): Progress {
  if (!output.isTerminal) return { show() {}, clear() {}, end() {} };
  const startedMs = clock.monotonicMs();
  let current: string | null = null;
  // A terminal that is gone has nothing to show progress to; the command itself goes on.
  const write = (text: string) => void output.write(text).catch(() => {});
  const paint = () => {
    if (current === null) return;
    const elapsed = durationText(clock.monotonicMs() - startedMs);
    // One column stays free: a full line would wrap on some terminals and could then not be removed.
    const line = fitText(`${printable(current)} … ${elapsed}`, Math.max(1, (output.columns() ?? 80) - 1));
    write(`\r\x1b[2K${line}`);
  };
  const timer = setInterval(paint, repaintMs);
  timer.unref();
  const clear = () => {
    if (current !== null) write('\r\x1b[2K');
    current = null;
  };
  return {
    show(text) {
      current = text;
      paint();
    },
    clear,
    end() {
      clearInterval(timer);
      clear();
    },
  };
}
