/** The gRPC server: services, interceptor, limits, and an end that lets calls finish. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { type Address, formatAddress, isLoopbackHost, parseAddress } from '@muster/common/address';
import { MusterError, messageOf } from '@muster/common/errors';
import type { AgentHubHandlers } from '@muster/common/gen/muster/v1/AgentHub';
import { musterService } from '@muster/common/wire/service';
import type { Gate } from '../auth/gate.ts';
import { authInterceptor } from '../auth/interceptor.ts';
import { hostFromHere } from '../tls/hosts.ts';
import type { TlsCredentials } from '../tls/serverTls.ts';
import { boundedAgentHubService } from './bounds/boundedService.ts';
import { grpcHandlers, type MusterCalls } from './calls.ts';
import type { Connections } from './connections.ts';
import { addHealth } from './health.ts';
import { type Listeners, listenOn } from './listeners.ts';
import { addReflection } from './reflection.ts';

/** For calls under way to finish at shutdown. Streams can be taken up again, so they are not waited for longer. */
const drainMs = 500;

/** A Prometheus page of 4 MiB, the largest of what agents send, and its frame. */
const requestBytesMax = 4 * 1024 * 1024 + 64 * 1024;

/**
 * Calls at a time on one connection. Far more than clients make: one that begins with more than this, before it has been
 * informed of the limit, is disconnected by HTTP/2 with all its calls.
 */
const streamsMax = 4_096;

const sweepIntervalMs = 1_000;

export interface ServedCalls {
  readonly muster: MusterCalls;
  readonly agentHub: AgentHubHandlers;
}

export interface RunningServer {
  /** `host:port` by which programs on this machine reach it. */
  readonly address: string;
  close(): Promise<void>;
}

/**
 * @param listen `host:port`
 * @param tls null: none, on loopback only
 * @throws {MusterError} when the address cannot be listened on
 */
export async function startServer(
  listen: string,
  gate: Gate,
  connections: Connections,
  calls: ServedCalls,
  tls: TlsCredentials | null = null,
): Promise<RunningServer> {
  const address = listenAddress(listen);
  const { host } = address;
  if (tls === null && !isLoopbackHost(host)) {
    // A token on a network without TLS is everyone's token.
    throw new MusterError('invalid', `refusing to listen on ${host} without TLS`);
  }
  const server = new Server({
    interceptors: [
      authInterceptor({
        gate,
        encrypted: tls !== null,
        hasCertified: (certificate) => tls?.hasCertified(certificate) ?? false,
        authenticated: (peer, by) => connections.authenticated(peer, by.kind === 'agent' ? by.id : null),
      }),
    ],
    'grpc.max_receive_message_length': requestBytesMax,
    'grpc.max_concurrent_streams': streamsMax,
    // Longer than any drain: shorter ones cut calls that are finishing (grpc-node issue 3068).
    'grpc.keepalive_time_ms': 60_000,
  });
  server.addService(musterService, grpcHandlers(calls.muster));
  server.addService(boundedAgentHubService, calls.agentHub);
  const health = addHealth(server);
  addReflection(server);
  const injector = server.createConnectionInjector(tls ?? ServerCredentials.createInsecure());
  const listeners = await bind(listen, address, (socket) => {
    // A peer that resets its connection is its own affair.
    socket.on('error', () => {});
    if (connections.opened(socket)) injector.injectConnection(socket);
  });
  const sweeping = setInterval(() => connections.sweep(), sweepIntervalMs);
  sweeping.unref();
  health.serving();
  return {
    address: formatAddress({ host: hostFromHere(host), port: listeners.port }),
    async close() {
      health.stopping();
      listeners.close();
      clearInterval(sweeping);
      await new Promise<void>((resolve) => {
        const force = setTimeout(() => {
          server.forceShutdown();
          resolve();
        }, drainMs);
        server.tryShutdown(() => {
          clearTimeout(force);
          resolve();
        });
      });
    },
  };
}

/** @throws {MusterError} for text that is no address */
export function listenAddress(listen: string): Address {
  const address = parseAddress(listen);
  if (address !== null) return address;
  throw new MusterError(
    'invalid',
    `invalid address "${listen}" to listen on; expected HOST:PORT, such as 127.0.0.1:7070`,
  );
}

async function bind(
  listen: string,
  address: Address,
  onConnection: Parameters<typeof listenOn>[1],
): Promise<Listeners> {
  try {
    return await listenOn(address, onConnection);
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    const message = taken
      ? `${listen} is in use by another program; choose another port (\`muster up --port\`, \`muster coordinator --listen\`)`
      : `cannot listen on ${listen}: ${messageOf(error)}`;
    throw new MusterError('failed_precondition', message, { cause: error });
  }
}
