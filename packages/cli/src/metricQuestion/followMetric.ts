/** Prints the values of a metric as they arrive: `muster metrics NAME --follow`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { unlessAborted } from '@muster/common/async';
import type { MetricPoint, MetricSeries, MetricUpdate } from '@muster/common/telemetry';
import type { MetricsWatch } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { abortOnStopRequest } from '../io.ts';
import { type Colours, coloursFor } from '../output/colours.ts';
import { jsonText } from '../output/json.ts';
import { startProgress } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import { clockText } from '../output/times.ts';
import { valueText } from '../output/units.ts';
import type { Session } from '../session.ts';

/** A watch may be left running for days; only its user knows when it is over. */
const followPatienceMs = Number.POSITIVE_INFINITY;
/** A coordinator that shuts down ends the stream without an error. */
const reopenDelayMs = 500;

/** Continues after the last value that was printed when the coordinator was away. */
export async function followMetric(
  { io, clock, environment }: Context,
  session: Session,
  request: MetricsWatch,
  output: 'table' | 'json',
): Promise<ExitCode> {
  // A watch outlasts the coordinator, but has to find one to begin with.
  await session.api.getCluster();
  const colours = coloursFor(io.stdout, environment);
  const stop = abortOnStopRequest(io);
  const progress = startProgress(io.stderr, clock);
  let position: string | null = null;
  try {
    await unlessAborted(stop.signal, () =>
      session.retrying(
        async (api, alive) => {
          for (;;) {
            const from = position === null ? {} : { position };
            const updates = api.watchMetrics({ ...request, ...from, follow: true }, stop.signal);
            for await (const update of updates) {
              alive();
              progress.clear();
              await io.stdout.write(output === 'json' ? jsonLine(update) : textLines(update, colours));
              position = update.position;
            }
            if (stop.signal.aborted) return;
            await sleep(reopenDelayMs, undefined, { signal: stop.signal });
          }
        },
        {
          patienceMs: followPatienceMs,
          onAway: ({ message }) => progress.show(`${message}; reconnecting`),
          abort: stop.signal,
        },
      ),
    );
  } finally {
    progress.end();
    stop.dispose();
  }
  return exitCodes.interrupted;
}

function jsonLine({ unit, series }: MetricUpdate): string {
  return `${jsonText({ unit, series })}\n`;
}

function textLines({ unit, series }: MetricUpdate, colours: Colours): string {
  const points = series.flatMap((each) => each.points.map((point) => ({ of: ofText(each), point })));
  return points
    .toSorted((a, b) => a.point.atMs - b.point.atMs)
    .map(({ of, point }) => `${colours.dim(clockText(point.atMs))}  ${of}${pointText(point, unit)}\n`)
    .join('');
}

function ofText({ jobId, nodeRank, node, gpuUuid }: MetricSeries): string {
  const rank = nodeRank === null ? [] : [`rank ${nodeRank}`];
  const parts = [jobId ?? '', ...rank, node, gpuUuid].filter((part) => part !== '');
  return parts.map((part) => `${printable(part)}  `).join('');
}

function pointText({ value, step = null, notFinite = 0 }: MetricPoint, unit: string): string {
  const shown = value === null && notFinite > 0 ? 'not a finite number' : valueText(value, unit);
  return step === null ? shown : `step ${step}  ${shown}`;
}
