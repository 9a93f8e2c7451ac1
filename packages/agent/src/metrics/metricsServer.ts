/**
 * Serves the Prometheus page to this machine, and to nobody else: what runs where is nobody's business on the network.
 * Prometheus on another machine fetches the page through the coordinator.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { MusterError, messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { pageContentType } from './page.ts';

export interface MetricsServerOptions {
  /** `host:port`, loopback only; port 0: any that is free. */
  readonly listen: string;
  /** Called for each scrape; must answer from what was read before. */
  readonly render: () => string;
  readonly log: Logger;
}

export interface MetricsServer {
  /** `127.0.0.1:9410`: where it really listens. */
  readonly address: string;
  /** Resolves when no connection is left. */
  close(): Promise<void>;
}

/** Prometheus and a curious person; one that never reads its answer holds a page of memory and no more. */
const connectionsMax = 16;
/** A scraper that takes longer to ask or to read has given up itself. */
const idleTimeoutMs = 30_000;
const headersTimeoutMs = 5_000;

/** @throws {MusterError} for an address that is not of this machine alone, or that is taken */
export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { host, port } = loopbackAddress(options.listen);
  let hasFailed = false;
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: headersTimeoutMs,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: 8 * 1024,
    },
    (request, answer) => {
      try {
        answerRequest(request, answer, options.render);
      } catch (error) {
        if (!hasFailed) options.log.error({ error: messageOf(error) }, 'the metrics page cannot be rendered');
        hasFailed = true;
        refuse(answer, 500, 'The page cannot be rendered; see the log of the agent.');
      }
    },
  );
  server.maxConnections = connectionsMax;
  server.setTimeout(idleTimeoutMs);
  await listening(server, { host, port }, options);
  const bound = server.address() as AddressInfo;
  return {
    address: `${host.includes(':') ? `[${host}]` : host}:${bound.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // A scraper that reads slowly would keep the agent from ending.
        server.closeAllConnections();
      }),
  };
}

function answerRequest(request: IncomingMessage, answer: ServerResponse, render: () => string): void {
  // A web page could otherwise read this one through a name of its own that leads to 127.0.0.1.
  if (!isLoopbackName(hostOf(request.headers.host ?? '')))
    return refuse(answer, 403, 'Ask for this page as 127.0.0.1 or localhost.');
  if (request.url?.split('?', 1)[0] !== '/metrics')
    return refuse(answer, 404, 'There is only /metrics here.');
  if (request.method !== 'GET') {
    answer.setHeader('allow', 'GET');
    return refuse(answer, 405, 'This page can only be read, with GET.');
  }
  const page = Buffer.from(render());
  answer.writeHead(200, { 'content-type': pageContentType, 'content-length': page.length });
  answer.end(page);
}

function refuse(answer: ServerResponse, status: number, message: string): void {
  // What a refused request still sends is not read.
  answer.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  answer.end(`${message}\n`);
}

/** @throws {MusterError} */
function loopbackAddress(listen: string): { host: string; port: number } {
  const [, host = '', digits = ''] = /^(.*):(\d{1,5})$/.exec(listen) ?? [];
  const port = Number(digits);
  if (host === '' || port > 65_535)
    throw new MusterError(
      'invalid',
      `The address of the metrics page, ${JSON.stringify(listen)}, is not understood; write one like 127.0.0.1:9410.`,
    );
  if (!isLoopbackName(host))
    throw new MusterError(
      'invalid',
      `The metrics page would be open to the network at ${listen}: it has neither TLS nor a token. Use 127.0.0.1:${port}; ` +
        `Prometheus elsewhere gets the page through the coordinator.`,
    );
  // The name is what /etc/hosts makes of it; the address is not.
  return { host: host === 'localhost' ? '127.0.0.1' : host.replace(/^\[|\]$/g, ''), port };
}

function isLoopbackName(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function hostOf(header: string): string {
  return header.replace(/:\d+$/, '').toLowerCase();
}

function listening(
  server: Server,
  address: { readonly host: string; readonly port: number },
  { listen, log }: MetricsServerOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'another program listens there' : error.message;
      reject(
        new MusterError(
          'unavailable',
          `The metrics page cannot be served at ${listen}: ${reason}. Choose another port with --metrics.`,
          { cause: error },
        ),
      );
    });
    server.listen({ ...address, exclusive: true }, () => {
      server.removeAllListeners('error');
      server.on('error', (error) => log.warn({ error: messageOf(error) }, 'the metrics page has a problem'));
      resolve();
    });
  });
}
