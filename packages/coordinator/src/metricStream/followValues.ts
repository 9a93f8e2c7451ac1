/**
 * A stream of the values of a metric. That something has arrived only means that there is more to read: the values are read from
 * memory, after what was told before. So a reader that is slow costs no memory, and misses nothing that is still there.
 */
import type { MetricSeries } from '@muster/common/telemetry';
import type { Positions } from '../metricQuery/positions.ts';
import { nextRound } from '../work/inOrder.ts';
import type { ClosedSteps } from './closedSteps.ts';

/** The values of one metric, from one or several sources such as nodes. */
export interface ValueSource {
  /** @param onNew told each source that has something new @returns ends it */
  follow(onNew: (source: string) => void): () => void;
  /** Those that may have values from before. */
  earlierSources(): Promise<readonly string[]>;
  /** What follows of a source, in the position of the stream from then on. @returns null: nothing more for now, or aborted */
  next(source: string, abort: AbortSignal): Promise<readonly MetricSeries[] | null>;
}

export interface ValueUpdate {
  readonly series: readonly MetricSeries[];
  readonly position: string;
}

export interface FollowOptions {
  readonly follow: boolean;
  /** Begin with what is already there after the position. */
  readonly withEarlier: boolean;
  /** Makes one value of those of a step. Absent: each value is told as it is. */
  readonly perStep?: { readonly steps: ClosedSteps; readonly wallMs: () => number };
}

/** The wall clock may be set while a step is waited for. */
const waitMsMax = 60_000;

export async function* followValues(
  values: ValueSource,
  positions: Positions,
  { follow, withEarlier, perStep }: FollowOptions,
  abort: AbortSignal,
): AsyncGenerator<ValueUpdate> {
  const changed = new Set<string>();
  let wake = () => {};
  const onAbort = () => wake();
  abort.addEventListener('abort', onAbort);
  const unfollow = values.follow((source) => {
    changed.add(source);
    wake();
  });
  try {
    if (withEarlier) for (const source of await values.earlierSources()) changed.add(source);
    while (!abort.aborted) {
      for (const source of changed) {
        // Before it is read: what arrives meanwhile has to be looked for again.
        changed.delete(source);
        for (;;) {
          const series = await values.next(source, abort);
          if (series === null || abort.aborted) break;
          if (perStep === undefined) yield { series, position: positions.text() };
          else perStep.steps.add(series);
          await nextRound();
        }
      }
      const closed = perStep?.steps.take(perStep.wallMs()) ?? null;
      if (closed !== null) yield closed;
      if (!follow) return;
      const waitMs = perStep?.steps.waitMs(perStep.wallMs()) ?? null;
      await new Promise<void>((resolve) => {
        const timer = waitMs === null ? null : setTimeout(resolve, Math.min(waitMs, waitMsMax));
        wake = () => {
          if (timer !== null) clearTimeout(timer);
          resolve();
        };
        if (changed.size > 0 || abort.aborted) wake();
      });
    }
  } finally {
    unfollow();
    abort.removeEventListener('abort', onAbort);
  }
}
