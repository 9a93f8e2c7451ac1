/** Calls that no client of ours would make: any method with any token, and an agent's side of a session by hand. */
import { Client, type ClientDuplexStream, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { LogUpload } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck__Output } from '@muster/common/gen/muster/v1/LogUploadAck';
import { channelTo } from '@muster/common/wire/channel';
import { agentHubService } from '@muster/common/wire/service';
import type { ChannelTarget } from '@muster/common/wire/trust';
import { patienceMs } from './patience.ts';

/** For calls that are let through and would never end, such as a watch. */
export const endlessCallMs = 5_000;

function metadataWith(entries: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

export function bearerOf(token: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token}` };
}

export interface Answer {
  /** `OK`, or such as `NOT_FOUND: there is no …`. */
  readonly status: string;
  /** The message, encoded; null when there was none. */
  readonly message: Buffer | null;
}

function clientOf(target: ChannelTarget): Client {
  const channel = channelTo(target);
  return new Client(target.address, channel.credentials, channel.options);
}

/** Sends one encoded request, the empty one by default, to any method. */
export function callMethod(
  target: ChannelTarget,
  path: string,
  headers: Readonly<Record<string, string>>,
  { request = Buffer.alloc(0), timeoutMs = patienceMs }: { request?: Buffer; timeoutMs?: number } = {},
): Promise<Answer> {
  const client = clientOf(target);
  const same = (bytes: Buffer) => bytes;
  const deadline = Date.now() + timeoutMs;
  return new Promise((resolve) => {
    const answered = (error: ServiceError | null, message: Buffer | undefined) => {
      client.close();
      resolve({
        status: error === null ? 'OK' : `${status[error.code]}: ${error.details}`,
        message: message ?? null,
      });
    };
    client.makeUnaryRequest(path, same, same, request, metadataWith(headers), { deadline }, answered);
  });
}

/** An agent without the agent: sends what the test makes it send. */
export class FakeAgent {
  private readonly client: Client;
  private readonly headers: Readonly<Record<string, string>>;

  /** @param token null: the certificate of the target identifies it */
  constructor(target: ChannelTarget, token: string | null) {
    this.client = clientOf(target);
    this.headers = token === null ? {} : bearerOf(token);
  }

  join(request: { joinToken: string; nodeName: string; credential: string }): Promise<void> {
    const { path, requestSerialize } = agentHubService.Join;
    return new Promise((resolve, reject) => {
      const done = (error: ServiceError | null) => (error === null ? resolve() : reject(error));
      const serialize = requestSerialize as (value: object) => Buffer;
      this.client.makeUnaryRequest(
        path,
        serialize,
        (bytes) => bytes,
        request,
        metadataWith(this.headers),
        done,
      );
    });
  }

  session(): ClientDuplexStream<AgentMessage, CoordinatorMessage__Output> {
    const { path, requestSerialize, responseDeserialize } = agentHubService.Session;
    return this.client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadataWith(this.headers),
    );
  }

  uploadLogs(): ClientDuplexStream<LogUpload, LogUploadAck__Output> {
    const { path, requestSerialize, responseDeserialize } = agentHubService.UploadLogs;
    return this.client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadataWith(this.headers),
    );
  }

  close(): void {
    this.client.close();
  }
}

/** The next message of a stream. @throws {ServiceError} when it is refused instead */
export function nextMessage<T>(stream: ClientDuplexStream<never, T>): Promise<T> {
  return new Promise((resolve, reject) => {
    stream.once('data', resolve);
    stream.once('error', reject);
  });
}
