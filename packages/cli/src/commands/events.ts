import { setTimeout as sleep } from 'node:timers/promises';
import { unlessAborted } from '@muster/common/async';
import { parseDurationMs } from '@muster/common/spec/duration';
import type { EventView } from '@muster/common/views';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { wholeNumberFlag } from '../flags.ts';
import { abortOnStopRequest } from '../io.ts';
import { type Colours, coloursFor } from '../output/colours.ts';
import { jsonText } from '../output/json.ts';
import { startProgress } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import { clockText, durationText } from '../output/times.ts';
import { type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

interface EventsFlags extends QueryFlags {
  readonly follow?: boolean;
  readonly since?: EventsStart;
  readonly until?: string;
  readonly limit?: number;
  readonly subject?: string;
}

/** Where to begin: behind an event, or at a time as the API takes it. */
type EventsStart = { readonly seq: number } | { readonly time: string };

/** Events shown unless the user says where to begin. */
const newestShown = 20;
const limitMax = 100_000;

/** A watch may be left running for days; only its user knows when it is over. */
const followPatienceMs = Number.POSITIVE_INFINITY;
/** A coordinator that shuts down ends the stream without an error. */
const reopenDelayMs = 500;

export const command: CommandModule = {
  define(sub) {
    sub
      .option('-f, --follow', 'stream new events as they happen')
      .option(
        '--since <start>',
        'every event after this sequence number, or since a time: 2h, 2026-01-02T03:04:05Z; 0: all that are kept',
        startFlag,
      )
      .option('--until <time>', 'only events until this time, written as for --since', timeFlag)
      .option(
        '--limit <count>',
        `only the newest COUNT of them; default: ${newestShown}, with --since all`,
        wholeNumberFlag('--limit', 1, limitMax),
      )
      .option('--subject <id>', 'only events of this job or node');
    withQuery(sub);
    sub.addHelpText(
      'after',
      `\nShows the newest ${newestShown} events unless --since, --until or --limit says otherwise. -o json prints one ` +
        'CloudEvent a line; `--since` with the last sequence number seen misses nothing.',
    );
  },
  run: showEvents,
};

function showEvents(context: Context, flags: EventsFlags): Promise<ExitCode> {
  const { io, clock, environment } = context;
  const follow = flags.follow === true;
  if (follow && flags.until !== undefined)
    throw usageError('--until and --follow exclude each other: nothing follows an end');
  const colours = coloursFor(io.stdout, environment);
  return withSession(context, flags, async (session) => {
    // A watch outlasts the coordinator, but has to find one to begin with.
    if (follow) await session.api.getCluster();
    const stop = abortOnStopRequest(io);
    const progress = startProgress(io.stderr, clock);
    const start = startOf(flags);
    /** Null until an event was received: what follows it is asked for from then on. */
    let lastSeq: number | null = null;
    try {
      await unlessAborted(stop.signal, () =>
        session.retrying(
          async (api, alive) => {
            for (;;) {
              const request = {
                ...(lastSeq === null ? start : { sinceSeq: lastSeq }),
                follow,
                ...(flags.until === undefined ? {} : { endTime: flags.until }),
                ...(flags.subject === undefined ? {} : { subject: flags.subject }),
              };
              for await (const event of api.watchEvents(request, stop.signal)) {
                alive();
                progress.clear();
                await io.stdout.write(flags.output === 'json' ? jsonLine(event) : textLine(event, colours));
                lastSeq = event.seq;
              }
              if (!follow || stop.signal.aborted) return;
              await sleep(reopenDelayMs, undefined, { signal: stop.signal });
            }
          },
          {
            patienceMs: follow ? followPatienceMs : 0,
            onAway: ({ message }) => progress.show(`${message}; reconnecting`),
            abort: stop.signal,
          },
        ),
      );
    } finally {
      progress.end();
      stop.dispose();
    }
    if (!stop.signal.aborted) return exitCodes.ok;
    const subject = flags.subject === undefined ? '' : ` --subject ${flags.subject}`;
    await io.stderr.write(
      `Continue with: ${environment.programName} events -f${subject} --since ${lastSeq ?? start.sinceSeq ?? 0}\n`,
    );
    return exitCodes.interrupted;
  });
}

/** The part of the request that says where to begin. */
function startOf({ since, until, limit }: EventsFlags): {
  readonly sinceSeq?: number;
  readonly startTime?: string;
  readonly newest?: number;
} {
  const newest = limit ?? (since === undefined && until === undefined ? newestShown : undefined);
  return {
    ...(since === undefined ? {} : 'seq' in since ? { sinceSeq: since.seq } : { startTime: since.time }),
    ...(newest === undefined ? {} : { newest }),
  };
}

/** Digits are a sequence number: no other time is written with less than a unit or a date. */
function startFlag(typed: string): EventsStart {
  return /^\d{1,15}$/.test(typed) ? { seq: Number(typed) } : { time: timeFlag(typed) };
}

/** The coordinator reads the time, and takes a duration for one in the future unless it has a sign. */
function timeFlag(typed: string): string {
  return parseDurationMs(typed) === null ? typed : `-${typed}`;
}

function jsonLine({ cloudEvent }: EventView): string {
  return `${jsonText(cloudEvent)}\n`;
}

function textLine(
  { seq, subjectSeq, kind, subject, timeMs, cloudEvent }: EventView,
  { dim, bold }: Colours,
): string {
  const by = cloudEvent['by'];
  const caller = typeof by === 'string' ? `by ${by}` : '';
  const data = printable(
    [dataText(cloudEvent['data'], timeMs), caller].filter((text) => text !== '').join('  '),
  );
  const about = data === '' ? printable(subject) : `${printable(subject).padEnd(16)}  ${dim(data)}`;
  // What is not stored has no number of its own.
  const number = subjectSeq === 0 ? '' : String(seq);
  const when = dim(`${number.padStart(6)}  ${clockText(timeMs)}`);
  return `${when}  ${bold(kind.padEnd(18))}  ${about}\n`;
}

/** An end that is known so much later is shown with its own time. */
const lateMs = 2_000;

/** Of a list of texts; more are counted. */
const textsShown = 3;

/**
 * What of an event's data fits on a line: facts as `name=value`, then its sentences. The rest, such as the log line that a
 * condition rests on, is for `-o json`.
 */
function dataText(data: unknown, timeMs: number): string {
  if (typeof data !== 'object' || data === null) return '';
  const { message, changes, endedAtMs, evidence: _, ...facts } = data as Readonly<Record<string, unknown>>;
  return [
    ...(typeof endedAtMs === 'number' && timeMs - endedAtMs >= lateMs
      ? [`ended ${clockText(endedAtMs)}, learned ${durationText(timeMs - endedAtMs)} later`]
      : []),
    ...Object.entries(facts)
      .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value) && value !== '')
      .map(([name, value]) => `${name}=${String(value)}`),
    ...(typeof message === 'string' ? [message] : []),
    ...(Array.isArray(changes) ? [changesText(changes)] : []),
  ].join(' ');
}

function changesText(changes: readonly unknown[]): string {
  const more = changes.length - textsShown;
  return [...changes.slice(0, textsShown).map(String), ...(more > 0 ? [`${more} more`] : [])].join('; ');
}
