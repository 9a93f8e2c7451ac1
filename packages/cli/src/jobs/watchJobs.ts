/** `muster jobs --watch`: the table again and again on a terminal, a line for each change in a pipe. */

import { setTimeout as sleep } from 'node:timers/promises';
import { whenAborted } from '@muster/common/async';
import type { JobView } from '@muster/common/views';
import type { Context } from '../context.ts';
import { abortOnStopRequest } from '../io.ts';
import { openScreen } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import { clockText } from '../output/times.ts';
import { markedState, nameOf, whyText } from './summary.ts';

export interface JobsSource {
  /** Retries for as long as it takes. */
  look(abort: AbortSignal): Promise<readonly JobView[]>;
  /** The whole table, for a terminal of this width. */
  table(jobs: readonly JobView[], width: number | null): string;
}

const refreshMs = 2_000;

/** Resolves when somebody has asked for its end. */
export async function watchJobs(
  context: Context,
  first: readonly JobView[],
  source: JobsSource,
): Promise<void> {
  const { io } = context;
  const stop = abortOnStopRequest(io);
  try {
    if (io.stdout.isTerminal) await redraw(context, first, source, stop.signal);
    else await append(context, first, source, stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    stop.dispose();
  }
}

async function redraw(
  { io }: Context,
  first: readonly JobView[],
  source: JobsSource,
  abort: AbortSignal,
): Promise<void> {
  let jobs = first;
  const left = new AbortController();
  const ended = AbortSignal.any([abort, left.signal]);
  const screen = openScreen(io.stdout, ({ columns, rows }) => {
    const lines = source.table(jobs, columns).trimEnd().split('\n');
    return [...lines.slice(0, rows - 1), ...(jobs.length === 0 ? ['No matching jobs.'] : []), 'q quits'];
  });
  const stopKeys = io.stdin.isTerminal
    ? io.stdin.onKeys((typed) => {
        if (['q', 'Q', '\x03', '\x1b'].some((key) => typed.includes(key))) left.abort();
      })
    : () => {};
  const looking = async () => {
    for (;;) {
      await sleep(refreshMs, undefined, { signal: ended });
      jobs = await source.look(ended);
      screen.refresh();
    }
  };
  try {
    screen.refresh();
    const watched = looking().catch((error: unknown) => {
      if (!ended.aborted) throw error;
    });
    await Promise.race([watched, screen.broken, whenAborted(ended)]);
  } finally {
    left.abort();
    stopKeys();
    await screen.close();
  }
}

async function append(
  { io, clock }: Context,
  first: readonly JobView[],
  source: JobsSource,
  abort: AbortSignal,
): Promise<void> {
  const shown = new Map<string, string>();
  let jobs = first;
  for (;;) {
    for (const job of jobs.toReversed()) {
      const line = [job.id, nameOf(job), markedState(job), whyText(job)]
        .map((part) => printable(part))
        .join('  ');
      if (shown.get(job.id) === line) continue;
      shown.set(job.id, line);
      await io.stdout.write(`${clockText(clock.wallMs())}  ${line.trimEnd()}\n`);
    }
    await sleep(refreshMs, undefined, { signal: abort });
    jobs = await source.look(abort);
  }
}
