/**
 * The HTTP API: every call of the service `Muster` as JSON, and its streams as server-sent events. The handlers are those of gRPC,
 * who calls is established as for gRPC, and connections count together with those of gRPC.
 */
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { formatAddress, isLoopbackHost, parseAddress } from '@muster/common/address';
import { MusterError, messageOf } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { traceparentKey } from '@muster/common/traceContext';
import { versionKey } from '@muster/common/version';
import { jsonOfMessage } from '@muster/common/wire/jsonMessages';
import { serviceMethods } from '@muster/common/wire/messages';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { establish, plainAddress } from '../auth/establish.ts';
import type { Gate } from '../auth/gate.ts';
import type { Identity } from '../caller.ts';
import { asMusterError, type MusterCalls, type UnaryMethod } from '../rpc/calls.ts';
import { type Connections, httpPeer } from '../rpc/connections.ts';
import type { DeliverWebhook } from '../rpc/webhookDeliveries.ts';
import { hostFromHere } from '../tls/hosts.ts';
import type { HttpsContext } from '../tls/serverTls.ts';
import { bodyBytesMax, bodyTooLarge, textOfBody } from './body.ts';
import { isOwnName, isOwnOrigin } from './names.ts';
import { placesOf, requestOf, type SentCall } from './parameters.ts';
import { type ProblemDetails, problemOf, problemType } from './problems.ts';
import { apiPrefix, type CallName, type Route, routesOfCalls } from './routes.ts';
import type { SseTiming } from './sseStream.ts';
import { serveStream } from './streams.ts';
import { addToolRoute } from './toolRoute.ts';
import { addWebhookRoute } from './webhookRoute.ts';

const headerTimeoutMs = 10_000;
/** For a request to arrive, its body included. */
const requestTimeoutMs = 30_000;
const idleTimeoutMs = 75_000;
const timeoutCheckMs = 5_000;
const handshakeTimeoutMs = 10_000;
/** For calls under way to finish at shutdown, as for gRPC. */
const drainMs = 500;
/** Of a reference or a name in a path, characters. */
const parameterLengthMax = 512;

export interface ApiParts {
  readonly gate: Gate;
  readonly connections: Pick<Connections, 'opened' | 'authenticated'>;
  readonly calls: MusterCalls;
  readonly deliver: DeliverWebhook;
  /** null: none, on loopback only. */
  readonly tls: HttpsContext | null;
  /** Hosts by which clients may call this server, beside names of loopback. */
  readonly hosts: readonly string[];
  readonly random: RandomBytes;
  readonly log: Logger;
  readonly timing: SseTiming;
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly wallMs: () => number;
}

export interface RunningApi {
  /** `http://host:port` by which programs on this machine reach it. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * @param listen `host:port`; port 0 picks a free one
 * @throws {MusterError} when the address cannot be listened on
 */
export async function startApi(listen: string, parts: ApiParts): Promise<RunningApi> {
  const { tls } = parts;
  const address = parseAddress(listen);
  if (address === null)
    throw new MusterError(
      'invalid',
      `invalid address "${listen}" for --api; expected HOST:PORT, such as 127.0.0.1:7072`,
    );
  const host = address.host.replace(/^\[(.*)\]$/, '$1');
  if (tls === null && !isLoopbackHost(host)) {
    throw new MusterError(
      'invalid',
      `refusing to serve the HTTP API on ${host} without TLS: --listen with an address other than loopback creates the certificates for both`,
    );
  }
  const stopping = new AbortController();
  const app = createApp(parts, stopping.signal);
  try {
    await app.listen({ host, port: address.port });
  } catch (error) {
    await app.close();
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    const message = taken
      ? `${listen}, the address of the HTTP API, is in use by another program; choose another one with --api (port 0 takes a free one)`
      : `cannot serve the HTTP API on ${listen}: ${messageOf(error)}; choose another address with --api`;
    throw new MusterError('failed_precondition', message, { cause: error });
  }
  const { port } = app.server.address() as AddressInfo;
  const served = formatAddress({ host: hostFromHere(host), port });
  return {
    url: `${tls === null ? 'http' : 'https'}://${served}`,
    async close() {
      stopping.abort();
      const force = setTimeout(() => app.server.closeAllConnections(), drainMs);
      await app.close();
      clearTimeout(force);
    },
  };
}

function createApp(parts: ApiParts, stopping: AbortSignal): FastifyInstance {
  const app: FastifyInstance = Fastify({
    serverFactory: (handler) => {
      const server = newServer(parts.tls);
      server.on('request', handler);
      server.on('connection', (socket: Socket) => void parts.connections.opened(socket, 'http'));
      return server;
    },
    bodyLimit: bodyBytesMax,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: parameterLengthMax },
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, asProblem(error)),
    clientErrorHandler: (_error, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
      else socket.destroy();
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
  app.addHook('onRequest', async (request) => {
    if (!isOwnName(request.headers.host, parts.hosts)) {
      const message = `this server is not called ${String(request.headers.host).slice(0, 255)}: use its address, or a name of --advertise`;
      throw new MusterError('permission_denied', message);
    }
    if (!isOwnOrigin(request.headers.origin, request.headers.host))
      throw new MusterError('permission_denied', 'pages of other origins may not call this server');
  });
  app.setErrorHandler((error, request, reply) => {
    const problem = asProblem(error);
    if (problem.status === 500)
      parts.log.error({ path: request.url, error: messageOf(error) }, 'a call over HTTP failed');
    return sendProblem(reply, problem);
  });
  app.setNotFoundHandler((request, reply) => {
    const message = `there is no ${request.method} ${request.url.replace(/\?.*$/s, '').slice(0, 255)}; ${apiPrefix}/openapi.json lists the calls`;
    return sendProblem(reply, problemOf(new MusterError('not_found', message)));
  });
  // Who asks for these shows no token, so that the connection would be closed between two of them.
  app.get('/healthz', async (_request, reply) => reply.header('connection', 'close').send('ok\n'));
  app.get('/readyz', async (_request, reply) => {
    reply.header('connection', 'close');
    return stopping.aborted
      ? sendProblem(reply, problemOf(new MusterError('unavailable', 'the coordinator is stopping')))
      : reply.send('ready\n');
  });
  app.get(`${apiPrefix}/openapi.json`, async (_request, reply) => {
    const { default: document } = await import('./openapi.json', { with: { type: 'json' } });
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(document));
  });
  for (const method of serviceMethods('Muster')) {
    const name = method.name as CallName;
    for (const route of routesOfCalls[name]) addRoute(app, parts, { ...method, name }, route, stopping);
  }
  addWebhookRoute(app, {
    deliver: parts.deliver,
    peerOf,
    onSigned: ({ socket }) => noteAuthenticated(parts.connections, socket),
  });
  addToolRoute(app, {
    ...parts,
    encrypted: parts.tls !== null,
    bodyBytesMax,
    newRequestId: newKeyOf(parts, 'mcp'),
    onBug: (tool, error) => parts.log.error({ tool, error }, 'a tool for AI agents failed'),
    callerOf: (request, path) => callerOfRequest(parts, request, path, false),
    peerOf,
  });
  return app;
}

function newServer(tls: HttpsContext | null): Server {
  const limits = {
    headersTimeout: headerTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    connectionsCheckingInterval: timeoutCheckMs,
  };
  if (tls === null) return createServer(limits);
  const server = createSecureServer({ ...limits, ...tls.options, handshakeTimeout: handshakeTimeoutMs });
  tls.onRenewed((options) => server.setSecureContext(options));
  return server;
}

interface Method {
  readonly name: CallName;
  readonly path: string;
  readonly requestType: string;
  readonly responseType: string;
  readonly responseStream: boolean;
}

function addRoute(
  app: FastifyInstance,
  parts: ApiParts,
  { name, path, requestType, responseType, responseStream }: Method,
  route: Route,
  stopping: AbortSignal,
): void {
  const callers = new WeakMap<FastifyRequest, Identity>();
  const places = placesOf(route, requestType);
  const newKey = newKeyOf(parts, 'http');
  app.route({
    method: route.method,
    url: `${apiPrefix}${route.path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    // Before the body is read: who may not call is sent away with it.
    onRequest: async (request) => {
      const caller = callerOfRequest(parts, request, path, responseStream);
      callers.set(request, caller);
    },
    handler: async (request, reply) => {
      const caller = callers.get(request);
      if (caller === undefined) throw new MusterError('internal', 'the call has no caller');
      const call = parts.calls[name];
      const message = requestOf(places, requestType, sentBy(request), newKey);
      if ('handle' in call) {
        const answer = await (call as UnaryMethod<object, object>).handle(message, caller);
        return reply
          .type('application/json; charset=utf-8')
          .send(JSON.stringify(jsonOfMessage(responseType, answer)));
      }
      return serveStream({ ...parts, stopping }, { call, route, message, caller }, request, reply);
    },
  });
}

/** For requests whose client has not said by which key they are known. */
function newKeyOf({ random }: Pick<ApiParts, 'random'>, source: string): () => string {
  return () => `${source}-${Buffer.from(random(16)).toString('hex')}`;
}

function peerOf({ socket }: Pick<FastifyRequest, 'socket'>): string | null {
  const { remoteAddress } = socket;
  return remoteAddress === undefined ? null : plainAddress(remoteAddress);
}

function noteAuthenticated(
  connections: ApiParts['connections'],
  { remoteAddress, remotePort }: Socket,
): void {
  connections.authenticated(`${httpPeer}${remoteAddress}:${remotePort}`);
}

/** @throws {MusterError} for a call that is refused */
function callerOfRequest(
  { gate, tls, connections }: ApiParts,
  { headers, socket }: FastifyRequest,
  path: string,
  isStream: boolean,
): Identity {
  const version = headers[versionKey];
  const traceparent = headers[traceparentKey];
  const { caller, refusal, shownBy } = establish(
    { gate, encrypted: tls !== null },
    {
      path,
      isStream,
      peer: peerOf({ socket }),
      authorization: headers.authorization ?? null,
      certificate: () => null,
      version: typeof version === 'string' ? version : null,
      traceparent: typeof traceparent === 'string' ? traceparent : null,
    },
  );
  if (shownBy !== null) noteAuthenticated(connections, socket);
  if (caller === null) throw refusal;
  return caller;
}

function sentBy(request: FastifyRequest): SentCall {
  const key = request.headers['idempotency-key'];
  const query = /\?(.*)$/s.exec(request.url)?.[1] ?? '';
  return {
    path: request.params as Record<string, string>,
    query: new URLSearchParams(query),
    body: Buffer.isBuffer(request.body) ? textOfBody(request.body) : null,
    idempotencyKey: typeof key === 'string' ? key : null,
  };
}

/** What the framework found before a call was made, in our words. */
const ofFramework: Readonly<Record<string, readonly [status: number, message: string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [413, bodyTooLarge],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'send the body as JSON, with `content-type: application/json`'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'the body is not as long as `content-length` says'],
};

function asProblem(error: unknown): ProblemDetails {
  if (error instanceof MusterError) return problemOf(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = ofFramework[code];
  if (known !== undefined) return problemOf(new MusterError('invalid', known[1]), known[0]);
  if (code.startsWith('FST_ERR_')) return problemOf(new MusterError('invalid', messageOf(error)));
  return problemOf(asMusterError(error));
}

function sendProblem(reply: FastifyReply, problem: ProblemDetails): FastifyReply {
  if (problem.status === 401) void reply.header('www-authenticate', 'Bearer realm="muster"');
  return reply.code(problem.status).type(problemType).send(JSON.stringify(problem));
}
