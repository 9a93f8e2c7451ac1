/** What changes in place on a terminal: a picture that takes all of it, or one line of progress. */

import type { Clock } from '@muster/common/clock';
import type { Output } from '../io.ts';
import { fitText, printable } from './text.ts';
import { durationText } from './times.ts';

/** The whole terminal. What was on it before is there again afterwards. */
export interface Screen {
  /** Paints the picture as it is now; calls that come faster than the terminal takes them are one. */
  refresh(): void;
  /** Rejects when the terminal takes nothing any longer. */
  readonly broken: Promise<never>;
  close(): Promise<void>;
}

/** Another page to paint on, no cursor, and no wrapping: a long line is cut by the terminal and moves no other. */
const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const home = '\x1b[H';
const clearLine = '\x1b[K';
const clearBelow = '\x1b[J';

/** @param picture the lines for a terminal of this size; what is too much for it is cut off */
export function openScreen(
  output: Output,
  picture: (size: { readonly columns: number; readonly rows: number }) => readonly string[],
): Screen {
  const broken = Promise.withResolvers<never>();
  // A caller that closes the screen first no longer asks for it.
  broken.promise.catch(() => {});
  let stale = false;
  let painting: Promise<void> | null = null;
  let isFirst = true;

  async function paintUntilCurrent(): Promise<void> {
    while (stale) {
      stale = false;
      const rows = output.rows() ?? 24;
      const lines = picture({ columns: output.columns() ?? 80, rows }).slice(0, rows);
      const start = isFirst ? enter + home : home;
      isFirst = false;
      await output.write(`${start}${lines.map((line) => line + clearLine).join('\r\n')}${clearBelow}`);
    }
  }

  const refresh = () => {
    stale = true;
    painting ??= paintUntilCurrent()
      .catch(broken.reject)
      .finally(() => {
        painting = null;
      });
  };
  const stopFollowing = output.onResize(refresh);
  return {
    refresh,
    broken: broken.promise,
    async close() {
      stopFollowing();
      stale = false;
      await painting;
      if (!isFirst) await output.write(leave).catch(() => {});
    },
  };
}

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
  // There is nobody to show progress to where the terminal is gone; the command itself continues.
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
