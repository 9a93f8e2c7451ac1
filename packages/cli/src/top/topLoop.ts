/** `muster top` on a terminal: looks again and again, follows keys and the size of the window, until somebody leaves. */

import { setTimeout as sleep } from 'node:timers/promises';
import { whenAborted } from '@muster/common/async';
import type { Context } from '../context.ts';
import { abortOnStopRequest } from '../io.ts';
import { openScreen } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { viewOf } from '../query.ts';
import { formatTop, type TopSnapshot } from './topText.ts';

export interface TopSource {
  /** Tries for as long as it takes, and says why each time it has to try again. */
  look(onAway: (message: string) => void, abort: AbortSignal): Promise<TopSnapshot>;
  /** Resolves when it is time to look again; rejects when aborted. */
  wait(abort: AbortSignal): Promise<void>;
}

/** Frames change with the clock as well: what was read gets old. */
export function everyMs(refreshMs: number): TopSource['wait'] {
  return (abort) => sleep(refreshMs, undefined, { signal: abort });
}

interface View {
  snapshot: TopSnapshot;
  takenAtMs: number;
  /** Why there is nothing newer; null: there is. */
  away: string | null;
  /** Lines scrolled out at the top. */
  scrolled: number;
}

/** A key is a character, or the escape sequence of a special key. */
const keyPattern = /\p{Cc}\[[0-9;]*[A-Za-z~]|[^]/gu;
const quitKeys = new Set(['q', 'Q', '\x03', '\x1b']);
const scrollKeys: ReadonlyMap<string, (pageLines: number) => number> = new Map([
  ['\x1b[A', () => -1],
  ['k', () => -1],
  ['\x1b[B', () => 1],
  ['j', () => 1],
  ['\x1b[5~', (pageLines: number) => -pageLines],
  ['\x1b[6~', (pageLines: number) => pageLines],
  [' ', (pageLines: number) => pageLines],
]);

/** @param first is on the screen from the start: anyone who finds no coordinator never sees the screen change */
export async function watchTop(context: Context, first: TopSnapshot, source: TopSource): Promise<void> {
  const { io, clock } = context;
  const stop = abortOnStopRequest(io);
  const left = new AbortController();
  const ended = AbortSignal.any([stop.signal, left.signal]);
  const view: View = { snapshot: first, takenAtMs: clock.monotonicMs(), away: null, scrolled: 0 };
  let pageLines = 1;
  const screen = openScreen(io.stdout, (size) => {
    const frame = drawFrame(view, size, context);
    pageLines = frame.pageLines;
    view.scrolled = frame.scrolled;
    return frame.lines;
  });
  const onKeys = (typed: string) => {
    for (const [key] of typed.matchAll(keyPattern)) {
      if (quitKeys.has(key)) left.abort();
      view.scrolled += scrollKeys.get(key)?.(pageLines) ?? 0;
    }
    screen.refresh();
  };
  const stopKeys = io.stdin.isTerminal ? io.stdin.onKeys(onKeys) : () => {};

  async function lookAgain(): Promise<void> {
    const onAway = (message: string) => {
      view.away = message;
      screen.refresh();
    };
    for (;;) {
      await source.wait(ended);
      view.snapshot = await source.look(onAway, ended);
      view.takenAtMs = clock.monotonicMs();
      view.away = null;
      screen.refresh();
    }
  }

  try {
    screen.refresh();
    // An abort is an end, however the work that it cut short puts it.
    const looking = lookAgain().catch((error: unknown) => {
      if (!ended.aborted) throw error;
    });
    await Promise.race([looking, screen.broken, whenAborted(ended)]);
  } finally {
    left.abort();
    stopKeys();
    await screen.close();
    stop.dispose();
  }
}

function drawFrame(
  { snapshot, takenAtMs, away, scrolled }: View,
  { columns, rows }: { readonly columns: number; readonly rows: number },
  context: Context,
): { readonly lines: readonly string[]; readonly pageLines: number; readonly scrolled: number } {
  const view = { ...viewOf(context), width: columns };
  const { colours } = view;
  const text = formatTop(snapshot, view);
  const seen = durationText(context.clock.monotonicMs() - takenAtMs);
  const top = [
    away === null
      ? colours.bold(text.summary)
      : colours.red(`${printable(away)}; reconnecting. The view of ${seen} ago:`),
    ...text.headings,
  ];
  const pageLines = Math.max(1, rows - top.length - 1);
  const scrolledMax = Math.max(0, text.lines.length - pageLines);
  const from = Math.min(Math.max(0, scrolled), scrolledMax);
  const shown = text.lines.slice(from, from + pageLines);
  const range =
    scrolledMax === 0
      ? ''
      : `  lines ${from + 1} to ${from + shown.length} of ${text.lines.length}; j k scroll`;
  return { lines: [...top, ...shown, colours.dim(`q quits${range}`)], pageLines, scrolled: from };
}
