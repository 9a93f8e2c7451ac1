/**
 * The coordinator's HTTP side: Prometheus pages of itself and of its nodes, and the list of them. It only reads, asks for
 * no token, and therefore serves on loopback addresses only, to callers who call it by a loopback name.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ErrorCode, MusterError, messageOf } from '@muster/common/errors';
import { isNodeName, type NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';

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

/** Addresses that the HTTP side may serve on, and names that it may be called by. */
interface ListenAddress {
  /** As it was written: `127.0.0.1`, `localhost`, `[::1]`. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/**
 * @param text `host:port`
 * @throws {MusterError} when it is none, or one that others on the network could reach
 */
function parseListenAddress(text: string): ListenAddress {
  const match = /^(.+):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? '';
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new MusterError(
      'invalid',
      `invalid address for --http "${text}"; expected HOST:PORT, such as 127.0.0.1:7071`,
    );
  }
  if (!isLoopbackHost(host)) {
    throw new MusterError(
      'invalid',
      `refusing to serve metrics on ${host}: everybody who reaches that address could read them. ` +
        'Use --http 127.0.0.1:7071 and let Prometheus reach it on this machine or through an SSH tunnel.',
    );
  }
  return { host, port };
}

/**
 * Was this server called by a name of this machine? A web page can make a browser here ask for any name that it has had
 * resolve to 127.0.0.1, and read the answer as its own; the name stays in the Host header.
 */
function isOwnName(hostHeader: string | undefined): hostHeader is string {
  const host = /^(.+?)(?::\d{1,5})?$/.exec(hostHeader ?? '')?.[1] ?? '';
  return isLoopbackHost(host.toLowerCase());
}

function isLoopbackHost(host: string): boolean {
  return /^(127(\.\d{1,3}){3}|localhost|\[::1\])$/.test(host);
}

/**
 * What Prometheus' `http_sd_configs` reads: the coordinator and every node. Agents listen on loopback only and may be
 * behind NAT, so each is scraped through the coordinator, under a path of its own.
 */
interface TargetGroup {
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * @param address `host:port` under which the client reaches the coordinator
 * @param nodes silent ones too: Prometheus is to see that they are down
 */
function targetGroups(address: string, nodes: readonly string[]): readonly TargetGroup[] {
  return [
    { targets: [address], labels: { __metrics_path__: '/metrics', muster_role: 'coordinator' } },
    ...nodes.map((node) => ({
      targets: [address],
      labels: {
        __metrics_path__: nodeMetricsPath(node),
        // Else every node would be the same instance: the coordinator.
        instance: node,
        node,
        muster_role: 'agent',
      },
    })),
  ];
}

function nodeMetricsPath(node: string): string {
  return `/nodes/${node}/metrics`;
}

/** @returns the node that a path asks for; null when it is no such path */
function nodeOfPath(path: string): string | null {
  return /^\/nodes\/([^/]{1,63})\/metrics$/.exec(path)?.[1] ?? null;
}
