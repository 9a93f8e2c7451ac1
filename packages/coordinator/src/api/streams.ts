/** The streams of the API over HTTP: events, output of jobs and values of metrics as server-sent events, a backup as bytes. */
import { once } from 'node:events';
import { MusterError } from '@muster/common/errors';
import type { Event as WireEvent } from '@muster/common/gen/muster/v1/Event';
import type { LogPiece__Output } from '@muster/common/gen/muster/v1/LogPiece';
import type { MetricUpdate__Output } from '@muster/common/gen/muster/v1/MetricUpdate';
import { logPieceFromWire, metricUpdateFromWire } from '@muster/common/wire/codec';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Gate } from '../auth/gate.ts';
import type { Identity } from '../caller.ts';
import type { ReadPosition } from '../logs/readLogs.ts';
import { asMusterError, type StreamMethod } from '../rpc/calls.ts';
import { LogLineEvents, positionsOf } from './logLineEvents.ts';
import { problemOf } from './problems.ts';
import type { Route } from './routes.ts';
import { SseStream, type SseTiming, sseEvent } from './sseStream.ts';

export interface StreamParts {
  readonly gate: Gate;
  readonly timing: SseTiming;
  readonly nowMs: () => number;
  /** The coordinator stops. */
  readonly stopping: AbortSignal;
}

export interface AcceptedCall {
  readonly call: object;
  readonly route: Route;
  readonly message: object;
  readonly caller: Identity;
}

/** What makes events of the messages of a call. */
interface Events {
  /** @returns events, one after the other */
  of(message: object): string;
  /** What is left at the end. */
  rest(): string;
}

interface SseKind {
  /** What the request is after `Last-Event-ID`. */
  readonly resumed: (message: object, lastEventId: string) => object;
  readonly events: (parts: StreamParts, message: object) => Events;
}

const kinds: Readonly<Record<'events' | 'logs' | 'metrics', SseKind>> = {
  events: {
    resumed(message, lastEventId) {
      if (!/^\d{1,15}$/.test(lastEventId)) throw wrongId(lastEventId, 'the number of an event');
      // What follows an event that was received is sent whole.
      const { newest: _, ...rest } = message as { readonly newest?: number };
      return { ...rest, sinceSeq: Number(lastEventId) };
    },
    events: () => ({
      of(message) {
        const { seq = 0, subjectSeq, cloudEvent = '' } = message as WireEvent;
        // What is not stored has no number of its own, and nothing can be resumed after it.
        return sseEvent(cloudEvent, subjectSeq === 0 ? null : String(seq));
      },
      rest: () => '',
    }),
  },
  metrics: {
    resumed: (message, lastEventId) => ({ ...message, position: lastEventId }),
    events: () => ({
      of(message) {
        const { position, ...update } = metricUpdateFromWire(message as MetricUpdate__Output);
        return sseEvent(JSON.stringify(update), position);
      },
      rest: () => '',
    }),
  },
  logs: {
    resumed(message, lastEventId) {
      const from = positionsOf(lastEventId);
      if (from === null) throw wrongId(lastEventId, 'positions such as 1.0=4096');
      return { ...message, from };
    },
    events({ nowMs }, message) {
      const { from = [] } = message as { readonly from?: readonly ReadPosition[] };
      const events = LogLineEvents.resume(from);
      return {
        of: (piece) => events.of(logPieceFromWire(piece as LogPiece__Output), nowMs()),
        rest: () => events.rest(),
      };
    },
  },
};

function wrongId(lastEventId: string, expected: string): MusterError {
  const got = JSON.stringify(lastEventId.slice(0, 60));
  return new MusterError('invalid', `Last-Event-ID: got ${got}; expected ${expected}`);
}

/** @throws {MusterError} while the call is not accepted; what goes wrong later is an event */
export async function serveStream(
  parts: StreamParts,
  accepted: AcceptedCall,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { gate, stopping } = parts;
  const { route, caller } = accepted;
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, stopping]);
  const { raw } = reply;
  raw.once('close', () => over.abort());
  let refusal: MusterError | null = null;
  const closed = gate.calls.add({
    by: caller,
    end(why) {
      refusal = why;
      over.abort();
    },
  });
  try {
    const { produce } = accepted.call as StreamMethod<object, object>;
    if (route.stream === 'bytes') {
      const pieces = (await produce(accepted.message, signal, caller)) as AsyncIterable<{
        readonly data: Buffer;
      }>;
      await sendBytes(pieces, signal, reply, () => refusal);
      return reply;
    }
    const kind = kinds[route.stream ?? 'events'];
    const message = resumedMessage(kind, accepted.message, request);
    const messages = await produce(message, signal, caller);
    reply.hijack();
    const stream = new SseStream(raw, parts.timing, () => over.abort());
    await sendEvents(messages, kind.events(parts, message), stream, signal, () => refusal);
    return reply;
  } finally {
    closed();
  }
}

/** Streams follow unless they are asked not to: an EventSource would ask again at once. */
function resumedMessage(kind: SseKind, message: object, { headers, query }: FastifyRequest): object {
  const isToFollow = (query as Readonly<Record<string, unknown>>)['follow'] === undefined;
  const following = isToFollow ? { ...message, follow: true } : message;
  const lastEventId = headers['last-event-id'];
  return typeof lastEventId === 'string' ? kind.resumed(following, lastEventId) : following;
}

async function sendEvents(
  messages: AsyncIterable<object>,
  events: Events,
  stream: SseStream,
  signal: AbortSignal,
  refusal: () => MusterError | null,
): Promise<void> {
  try {
    for await (const message of messages) {
      if (signal.aborted) break;
      const text = events.of(message);
      const full = text === '' ? null : stream.send(text);
      if (full !== null) await full;
    }
    const why = refusal();
    if (why !== null) void stream.send(problemEvent(why));
    else if (!signal.aborted) void stream.send(`${events.rest()}${sseEvent('{}', null, 'end')}`);
  } catch (error) {
    void stream.send(problemEvent(asMusterError(error)));
  }
  stream.end();
}

function problemEvent(error: MusterError): string {
  return sseEvent(JSON.stringify(problemOf(error)), null, 'problem');
}

/** Headers are sent with the first piece, so that what fails before it is an answer of its own. */
async function sendBytes(
  pieces: AsyncIterable<{ readonly data: Buffer }>,
  signal: AbortSignal,
  reply: FastifyReply,
  refusal: () => MusterError | null,
): Promise<void> {
  const { raw } = reply;
  for await (const { data } of pieces) {
    if (!reply.sent) {
      reply.hijack();
      raw.writeHead(200, {
        'content-type': 'application/octet-stream',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
    }
    if (signal.aborted) break;
    if (!raw.write(data)) await once(raw, 'drain', { signal }).catch(() => {});
  }
  const why = refusal();
  if (!reply.sent) throw why ?? new MusterError('unavailable', 'the coordinator is stopping');
  // What is cut off must not look like all of it.
  if (signal.aborted) raw.destroy();
  else raw.end();
}
