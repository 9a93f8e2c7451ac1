/** The coordinator's side of the agents' protocol, for tests: a real gRPC server that does what a test wants. */

import type { ServerDuplexStream } from '@grpc/grpc-js';
import { Client, credentials, makeClientConstructor, Server, ServerCredentials, status } from '@grpc/grpc-js';
import type { AgentHubClient } from '@muster/common/gen/muster/v1/AgentHub';
import type { AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { LogUpload__Output } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck } from '@muster/common/gen/muster/v1/LogUploadAck';
import type { RowUpload__Output } from '@muster/common/gen/muster/v1/RowUpload';
import type { RowUploadAck } from '@muster/common/gen/muster/v1/RowUploadAck';
import type { TelemetryRequest } from '@muster/common/gen/muster/v1/TelemetryRequest';
import type { TelemetryUpload__Output } from '@muster/common/gen/muster/v1/TelemetryUpload';
import { agentHubService } from '@muster/common/wire/service';
import { expect, onTestFinished, vi } from 'vitest';

type RowCall = ServerDuplexStream<RowUpload__Output, RowUploadAck>;
type TelemetryCall = ServerDuplexStream<TelemetryUpload__Output, TelemetryRequest>;
type UploadCall = ServerDuplexStream<LogUpload__Output, LogUploadAck>;

type MessageKind =
  | 'hello'
  | 'heartbeat'
  | 'prepared'
  | 'checked'
  | 'report'
  | 'status'
  | 'credentialOffer'
  | 'credentialKept'
  | 'tokenKept';

/** One connection of an agent, as the coordinator sees it. */
export class HubSession {
  readonly received: AgentMessage__Output[] = [];
  private readonly call: ServerDuplexStream<AgentMessage__Output, CoordinatorMessage>;

  constructor(call: ServerDuplexStream<AgentMessage__Output, CoordinatorMessage>) {
    this.call = call;
    call.on('data', (message: AgentMessage__Output) => this.received.push(message));
    call.on('error', () => {});
    call.on('end', () => call.end());
  }

  send(message: CoordinatorMessage): void {
    this.call.write(message);
  }

  welcome(welcome: CoordinatorMessage['welcome'] = {}): void {
    this.send({ welcome: { heartbeatIntervalMs: 60_000, term: 3, ...welcome } });
  }

  end(): void {
    this.call.end();
  }

  refuse(code: status): void {
    this.call.emit('error', { code, details: 'you may not' });
  }

  /** Waits for a message of this kind. */
  async gets<K extends MessageKind>(kind: K): Promise<NonNullable<AgentMessage__Output[K]>> {
    const find = () => this.received.findLast((message) => message[kind] != null)?.[kind];
    await vi.waitFor(() => expect(find(), `a ${kind}`).toBeTruthy());
    return find() as NonNullable<AgentMessage__Output[K]>;
  }
}

export class TestHub {
  readonly sessions: HubSession[] = [];
  /** Uploads go here; by default nothing answers them. */
  onUpload: (upload: LogUpload__Output, call: UploadCall) => void = () => {};
  /** Rows of metrics go here; by default nothing answers them. */
  onRows: (upload: RowUpload__Output, call: RowCall) => void = () => {};
  /** Telemetry as it came, on every stream. */
  readonly telemetry: TelemetryUpload__Output[] = [];
  /** The streams of telemetry, oldest first. */
  readonly telemetryCalls: TelemetryCall[] = [];
  private server: Server | null = null;
  private port = 0;

  static async start(): Promise<TestHub> {
    const hub = new TestHub();
    await hub.serve();
    onTestFinished(() => hub.crash());
    return hub;
  }

  /** Serves again, at the same address, after a crash. */
  async serve(): Promise<void> {
    const server = new Server();
    server.addService(agentHubService, {
      Join: (_call: unknown, answer: (error: null, value: object) => void) => answer(null, {}),
      Session: (call: ServerDuplexStream<AgentMessage__Output, CoordinatorMessage>) => {
        this.sessions.push(new HubSession(call));
      },
      UploadTelemetry: (call: TelemetryCall) => {
        this.telemetryCalls.push(call);
        call.on('data', (upload: TelemetryUpload__Output) => this.telemetry.push(upload));
        call.on('error', () => {});
        call.on('end', () => call.end());
      },
      UploadRows: (call: RowCall) => {
        call.on('data', (upload: RowUpload__Output) => this.onRows(upload, call));
        call.on('error', () => {});
        call.on('end', () => call.end());
      },
      UploadLogs: (call: UploadCall) => {
        call.on('data', (upload: LogUpload__Output) => this.onUpload(upload, call));
        call.on('error', () => {});
        call.on('end', () => call.end());
      },
    });
    this.server = server;
    const bound = Promise.withResolvers<number>();
    server.bindAsync(`127.0.0.1:${this.port}`, ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) bound.resolve(port);
      else bound.reject(error);
    });
    this.port = await bound.promise;
  }

  crash(): void {
    this.server?.forceShutdown();
    this.server = null;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The next connection, counted from 1. */
  async session(number: number): Promise<HubSession> {
    await vi.waitFor(() => expect(this.sessions.length).toBeGreaterThanOrEqual(number));
    return this.sessions[number - 1] as HubSession;
  }

  client(): AgentHubClient {
    const Hub = makeClientConstructor(agentHubService, 'AgentHub') as unknown as new (
      ...args: ConstructorParameters<typeof Client>
    ) => AgentHubClient;
    const client = new Hub(this.address, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 500,
    });
    onTestFinished(() => client.close());
    return client;
  }
}
