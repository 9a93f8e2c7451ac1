/** The gRPC server: services, interceptor, limits, and an end that lets calls finish. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { MusterError } from '@muster/common/errors';
import type { AgentHubHandlers } from '@muster/common/gen/muster/v1/AgentHub';
import type { MusterHandlers } from '@muster/common/gen/muster/v1/Muster';
import { agentHubService, musterService } from '@muster/common/wire/service';
import { type AuthParts, authInterceptor } from '../auth/interceptor.ts';
import { addHealth } from './health.ts';
import { addReflection } from './reflection.ts';

/** For calls under way to finish at shutdown. Streams can be taken up again, so they are not waited for longer. */
const drainMs = 500;

/** A Prometheus page of 4 MiB, the largest of what agents send, and its frame. */
const requestBytesMax = 4 * 1024 * 1024 + 64 * 1024;

export interface ServedCalls {
  readonly muster: MusterHandlers;
  readonly agentHub: AgentHubHandlers;
}

export interface RunningServer {
  /** `host:port` that it listens on. */
  readonly address: string;
  close(): Promise<void>;
}

/** @throws {MusterError} when the address cannot be listened on */
export async function startServer(
  listen: string,
  auth: AuthParts,
  calls: ServedCalls,
): Promise<RunningServer> {
  const host = requireLoopback(listen);
  const server = new Server({
    interceptors: [authInterceptor(auth)],
    'grpc.max_receive_message_length': requestBytesMax,
    // Longer than any drain: shorter ones cut calls that are finishing (grpc-node issue 3068).
    'grpc.keepalive_time_ms': 60_000,
  });
  server.addService(musterService, calls.muster);
  server.addService(agentHubService, calls.agentHub);
  const health = addHealth(server);
  addReflection(server);
  const port = await bind(server, listen);
  health.serving();
  return {
    address: `${host}:${port}`,
    async close() {
      health.stopping();
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

/** Without TLS a token on a network is everyone's token. */
function requireLoopback(listen: string): string {
  const match = /^(.+):(\d{1,5})$/.exec(listen);
  const host = match?.[1] ?? '';
  if (match === null || Number(match[2]) > 65_535) {
    throw new MusterError(
      'invalid',
      `"${listen}" is no address to listen on; give host:port, such as 127.0.0.1:7070`,
    );
  }
  if (!/^(127(\.\d{1,3}){3}|localhost|\[::1\])$/.test(host)) {
    throw new MusterError(
      'invalid',
      `refusing to listen on ${host}: without TLS, tokens and jobs would be readable on the network. ` +
        'Listen on 127.0.0.1 and reach it through an SSH tunnel.',
    );
  }
  return host;
}

function bind(server: Server, listen: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(listen, ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) {
        resolve(port);
        return;
      }
      const taken = /EADDRINUSE|address already in use/i.test(error.message);
      const message = taken
        ? `${listen} is in use by another program; choose another port (\`muster up --port\`, \`muster coordinator --listen\`)`
        : `cannot listen on ${listen}: ${error.message}`;
      reject(new MusterError('failed_precondition', message, { cause: error }));
    });
  });
}
