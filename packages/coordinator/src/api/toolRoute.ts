/** The tools for AI agents over HTTP: each request is one call of a tool, as the holder of its token. */
import { Readable } from 'node:stream';
import { messageOf } from '@muster/common/errors';
import { verbs } from '@muster/common/people';
import { traceparentKey } from '@muster/common/traceContext';
import { musterApiOver } from '@muster/common/wire/client';
import { musterService } from '@muster/common/wire/service';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Gate } from '../auth/gate.ts';
import type { Identity } from '../caller.ts';
import { asMusterError, type MusterCalls } from '../rpc/calls.ts';
import { localChannel } from './localChannel.ts';

export interface ToolRouteParts {
  readonly gate: Gate;
  readonly encrypted: boolean;
  readonly calls: MusterCalls;
  readonly bodyBytesMax: number;
  readonly newRequestId: () => string;
  readonly wallMs: () => number;
  /** A tool has failed by a mistake of ours. */
  readonly onBug: (tool: string, message: string) => void;
  /** Who makes a call of this path. @throws {MusterError} for one that is refused */
  readonly callerOf: (request: FastifyRequest, path: string) => Identity;
  readonly peerOf: (request: FastifyRequest) => string | null;
}

export const toolPath = '/mcp';

/** Whoever may ask who they are may connect; each call of a tool is established for itself. */
const connectPath = musterService.GetCaller.path;

export function addToolRoute(app: FastifyInstance, parts: ToolRouteParts): void {
  // Loaded with the first request: most coordinators serve none.
  const open = () => import('@muster/mcp/http').then((tools) => tools.openToolHandler(parts.bodyBytesMax));
  let opened: ReturnType<typeof open> | null = null;
  app.addHook('onClose', async () => {
    await (await opened)?.close();
  });
  const callers = new WeakMap<FastifyRequest, Identity>();
  app.route({
    method: ['GET', 'POST', 'DELETE'],
    url: toolPath,
    onRequest: async (request) => {
      callers.set(request, parts.callerOf(request, connectPath));
    },
    handler: async (request, reply) => {
      const caller = callers.get(request);
      const { authorization = null, [traceparentKey]: named } = request.headers;
      const traceparent = typeof named === 'string' ? named : null;
      const channel = localChannel(parts, { authorization, peer: parts.peerOf(request), traceparent });
      opened ??= open();
      const { handle } = await opened;
      const { wallMs: nowMs, newRequestId, onBug } = parts;
      const api = musterApiOver(channel, asMusterError);
      const answer = await handle(webRequest(request, reply), {
        api,
        verbs: caller?.kind === 'user' ? caller.verbs : verbs,
        nowMs,
        newRequestId,
        onBug,
      });
      return sendAnswer(answer, reply, (error) => onBug(toolPath, messageOf(error)));
    },
  });
}

/** The request in the words of the web, which ends when its client is gone. */
function webRequest(request: FastifyRequest, reply: FastifyReply): Request {
  const over = new AbortController();
  reply.raw.once('close', () => over.abort());
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  const { body } = request;
  return new Request(`http://localhost${toolPath}`, {
    method: request.method,
    headers,
    signal: over.signal,
    ...(Buffer.isBuffer(body) ? { body: new Uint8Array(body) } : {}),
  });
}

async function sendAnswer(
  answer: Response,
  reply: FastifyReply,
  onError: (error: unknown) => void,
): Promise<FastifyReply> {
  reply.status(answer.status);
  for (const [name, value] of answer.headers) reply.header(name, value);
  if (answer.headers.get('content-type')?.startsWith('text/event-stream') !== true)
    return reply.send(Buffer.from(await answer.arrayBuffer()));
  const { body } = answer;
  if (body === null) return reply.send();
  const stream = Readable.fromWeb(body);
  stream.on('error', onError);
  return reply.send(stream);
}
