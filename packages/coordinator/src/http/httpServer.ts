/**
 * The coordinator's HTTP side: Prometheus pages of itself and of its nodes, and the list of them. It only reads, asks for
 * no token, and therefore serves on loopback addresses only, to callers who call it by a loopback name.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ErrorCode, MusterError, messageOf } from '@muster/common/errors';
import { isNodeName, type NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { isOwnName, parseListenAddress } from './listenAddress.ts';
import { nodeOfPath, targetGroups } from './serviceDiscovery.ts';

const prometheusText = 'text/plain; version=0.0.4; charset=utf-8';
/** Prometheus keeps one connection per target. */
const connectionsMax = 4_096;
/** A caller has this long to say what it wants. */
const requestTimeoutMs = 10_000;
const paths = '/metrics, /sd, /nodes/NAME/metrics and /healthz';

export interface HttpParts {
  /** The coordinator's own page. */
  readonly ownPage: () => Promise<string>;
  /** A node's. Rejects with a MusterError that says why not. */
  readonly nodePage: (node: NodeName) => Promise<string>;
  /** Names of all nodes, sorted. */
  readonly nodes: () => readonly NodeName[];
  readonly log: Logger;
}

export interface RunningHttpServer {
  /** `host:port` that it serves on. */
  readonly address: string;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/**
 * @param listen `host:port`; port 0 picks a free one
 * @throws {MusterError} when the address cannot be served on
 */
export async function startHttpServer(listen: string, parts: HttpParts): Promise<RunningHttpServer> {
  const { host, port } = parseListenAddress(listen);
  const server = createServer({ requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs });
  server.maxConnections = connectionsMax;
  server.on('request', (request, response) => {
    handle(parts, request)
      .catch((error: unknown) => {
        parts.log.error({ path: request.url, error: messageOf(error) }, 'an HTTP request failed');
        return sentence(500, 'the coordinator failed to answer; its log says why');
      })
      .then((answer) => send(request, response, answer))
      .catch(() => response.destroy());
  });
  await listenOn(server, listen, host, port);
  const { port: actualPort } = server.address() as AddressInfo;
  return {
    address: `${host}:${actualPort}`,
    async close() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        // Prometheus keeps its connections open, and a page may be under way for seconds.
        server.closeAllConnections();
      });
    },
  };
}

function listenOn(server: Server, listen: string, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const message =
        error.code === 'EADDRINUSE'
          ? `${listen}, the address for metrics, is in use by another program; ` +
            'choose another address with --http (port 0 takes a free one)'
          : `cannot serve metrics on ${listen}: ${error.message}; choose another address with --http`;
      reject(new MusterError('failed_precondition', message, { cause: error }));
    });
    server.listen({ host: host.replace(/^\[(.*)\]$/, '$1'), port, exclusive: true }, resolve);
  });
}

async function handle(parts: HttpParts, request: IncomingMessage): Promise<Answer> {
  const { host } = request.headers;
  if (!isOwnName(host)) {
    return sentence(403, 'use a loopback name for this server, such as 127.0.0.1 or localhost');
  }
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return sentence(405, 'only GET is answered here');
  const path = (request.url ?? '').replace(/\?.*$/s, '');
  switch (path) {
    case '/metrics':
      return { status: 200, type: prometheusText, body: await parts.ownPage() };
    case '/sd': {
      // The caller's own name for us: behind a tunnel ours would lead nowhere.
      const groups = targetGroups(host, parts.nodes());
      return { status: 200, type: 'application/json', body: `${JSON.stringify(groups)}\n` };
    }
    case '/healthz':
      return sentence(200, 'ok');
    default: {
      const node = nodeOfPath(path);
      return node === null ? sentence(404, `no such page; the pages are ${paths}`) : nodePage(parts, node);
    }
  }
}

async function nodePage(parts: HttpParts, node: string): Promise<Answer> {
  if (!isNodeName(node) || !parts.nodes().includes(node)) {
    return sentence(404, `no such node; /sd lists the nodes`);
  }
  try {
    return { status: 200, type: prometheusText, body: await parts.nodePage(node) };
  } catch (error) {
    if (!(error instanceof MusterError)) throw error;
    return sentence(statusOf(error.code), error.message);
  }
}

function statusOf(code: ErrorCode): number {
  if (code === 'deadline_exceeded') return 504;
  return code === 'unavailable' ? 503 : 502;
}

function sentence(status: number, text: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body: `${text}\n` };
}

function send(request: IncomingMessage, response: ServerResponse, { status, type, body }: Answer): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    'content-type': type,
    'content-length': bytes.length,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}
