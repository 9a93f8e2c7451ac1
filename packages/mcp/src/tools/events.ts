/** What has happened since an event, and what happens next. */
import type { EventView } from '@muster/common/views';
import * as z from 'zod';
import { limitOf } from '../parameters.ts';
import { brief, firstFitting, isoTime, jsonBytes } from '../size.ts';
import { tool } from '../tool.ts';

const eventRow = z.object({
  seq: z.number(),
  kind: z.string(),
  subject: z.string().describe('id of a workload, name of a node, or cluster'),
  at: z.string(),
  data: z.record(z.string(), z.unknown()).describe('as docs/events.md says'),
});

/** Larger data of an event is omitted: the subject has it. */
const dataBytesMax = 600;

/** Without a sequence number the newest events are shown. */
const newestShown = 20;

/** A search in many events ends after this time, and continues in the next call. */
const readMsMax = 8_000;

/** How long a call waits at most: shorter than the time after which clients give a call up. */
const waitSecondsMax = 45;

export const eventsSince = tool({
  name: 'events_since',
  title: 'Follow events',
  about:
    'Events after a sequence number, oldest first: states of workloads, checkpoints, failures, nodes. To watch, call it again with ' +
    'nextSeq; with waitSeconds it answers as soon as something happens.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    sinceSeq: z.int().min(0).optional().describe('nextSeq of the answer before; default: the newest events'),
    subject: z.string().min(1).max(128).optional().describe('only of this workload or node'),
    kinds: z
      .array(z.string().max(64))
      .max(20)
      .default([])
      .describe('only these kinds, such as job.failed, or job.* for all of a category'),
    limit: limitOf(100, 30),
    waitSeconds: z
      .int()
      .min(0)
      .max(waitSecondsMax)
      .default(0)
      .describe('wait so long for the first event, if there is none yet'),
  }),
  output: z.object({
    events: z.array(eventRow),
    nextSeq: z.number().describe('pass it as sinceSeq'),
    more: z.boolean().describe('there are more already: call again at once'),
  }),
  async run(given, { api, abort }) {
    const { lastEventSeq } = await api.getCluster();
    const start = given.sinceSeq ?? Math.max(0, lastEventSeq - newestShown);
    const isFollowed = given.waitSeconds > 0;
    const over = AbortSignal.timeout(isFollowed ? given.waitSeconds * 1000 : readMsMax);
    const request = {
      sinceSeq: start,
      follow: isFollowed,
      ...(given.subject === undefined ? {} : { subject: given.subject }),
    };
    const events: z.input<typeof eventRow>[] = [];
    let nextSeq = start;
    let isFull = false;
    for await (const event of api.watchEvents(request, AbortSignal.any([abort, over]))) {
      // Notices are of now, and have no place in the order.
      if (event.subjectSeq === 0) continue;
      if (isAsked(event.kind, given.kinds)) {
        const row = rowOf(event);
        isFull = events.length === given.limit || firstFitting([...events, row]).length <= events.length;
        if (isFull) break;
        events.push(row);
      }
      nextSeq = event.seq;
      // What is there already is read to its end; what comes after that is not waited for.
      if (isFollowed && events.length > 0 && nextSeq >= lastEventSeq) break;
    }
    if (!isFollowed && over.aborted) isFull = true;
    // Events of other subjects, which were not shown, need not be looked at again.
    else if (!isFollowed && !isFull) nextSeq = Math.max(nextSeq, lastEventSeq);
    const data = { events, nextSeq, more: isFull };
    const last = events.at(-1);
    const text =
      last === undefined
        ? 'No such events since then.'
        : `${events.length} events, the last is ${last.kind} of ${last.subject}${isFull ? '; there are more' : ''}.`;
    return { data, text };
  },
});

function isAsked(kind: string, kinds: readonly string[]): boolean {
  if (kinds.length === 0) return true;
  return kinds.some((asked) => (asked.endsWith('.*') ? kind.startsWith(asked.slice(0, -1)) : kind === asked));
}

function rowOf({ seq, kind, subject, timeMs, cloudEvent }: EventView): z.input<typeof eventRow> {
  const data = cloudEvent['data'];
  const isSmall = typeof data === 'object' && data !== null && jsonBytes(data) <= dataBytesMax;
  return { seq, kind, subject: brief(subject, 128), at: isoTime(timeMs), data: isSmall ? { ...data } : {} };
}
