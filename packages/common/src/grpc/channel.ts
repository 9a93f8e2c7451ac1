/**
 * Calls by gRPC over one connection, which is opened by the first call and again by the next call after it has ended.
 *
 * The library for gRPC, which agents and the coordinator use, takes half of the time of a short command to load and to start:
 * see docs/decisions/command-start.md. Retries, load balancing and compression are not offered.
 */
import { type Http2Connection, type StreamFailure, streamWindowBytes } from './connection.ts';
import type { Headers } from './headers.ts';
import { grpcStatus } from './status.ts';

/** How a call failed, by the status of the server, or where it has sent none by what the connection reports. */
export class CallError extends Error {
  override readonly name = 'CallError';
  /** One of `grpcStatus`, or a number that the server has made up. */
  readonly status: number;
  /** Beside the status: further headers that the server has sent with it. */
  readonly trailers: Headers;

  constructor(status: number, message: string, trailers: Headers = new Map()) {
    super(message);
    this.status = status;
    this.trailers = trailers;
  }
}

/** No server was reached, or it is not one that this client can talk to. The cause has the reason. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

export interface GrpcChannel {
  /**
   * @param timeoutMs of the whole call, in milliseconds
   * @returns the encoded answer
   * @throws {CallError | UnreachableError}
   */
  unary(path: string, request: Uint8Array, timeoutMs: number): Promise<Buffer>;
  /**
   * Encoded messages as the server sends them. Leaving the loop cancels the call.
   * @param abort ends the stream without an error
   * @throws {CallError | UnreachableError}
   */
  stream(path: string, request: Uint8Array, abort?: AbortSignal): AsyncGenerator<Buffer>;
  /** Ends all calls. */
  close(): void;
}

interface ChannelCalls {
  readonly scheme: 'http' | 'https';
  readonly authority: string;
  readonly token: string;
  readonly headers: readonly (readonly [string, string])[];
}

const answerBytesMax = 64 * 1024 * 1024;
/** One byte that shows whether the message is compressed, four with its length. */
const prefixBytes = 5;

/**
 * @param connect opens a connection
 * @param target `authority` as in a URL, the scheme by which it is reached, and headers of every call beside the usual ones
 */
export function grpcChannel(
  connect: () => Http2Connection,
  { scheme, authority, token, headers }: ChannelCalls,
): GrpcChannel {
  let connection: Http2Connection | null = null;

  function call(path: string, request: Uint8Array, timeoutMs: number | null): Answers {
    if (connection === null || connection.isClosing) connection = connect();
    return new Answers(
      connection,
      [
        [':method', 'POST'],
        [':scheme', scheme],
        [':path', path],
        [':authority', authority],
        ['te', 'trailers'],
        ['content-type', 'application/grpc'],
        ['authorization', `Bearer ${token}`],
        ...headers,
        ...(timeoutMs === null ? [] : [['grpc-timeout', `${Math.ceil(timeoutMs)}m`] as const]),
      ],
      framed(request),
    );
  }

  return {
    async unary(path, request, timeoutMs) {
      const answers = call(path, request, timeoutMs);
      const timer = setTimeout(() => {
        answers.fail(
          connection?.isConnecting === true
            ? new UnreachableError('ETIMEDOUT: the connection was not opened in time')
            : new CallError(grpcStatus.deadlineExceeded, 'Deadline exceeded'),
        );
      }, timeoutMs);
      try {
        const answer = await answers.next();
        // The status follows the answer, and may be an error anyway.
        if (answer !== null && (await answers.next()) === null) return answer;
        throw new CallError(grpcStatus.internal, 'the coordinator did not answer with one message');
      } finally {
        clearTimeout(timer);
        answers.cancel();
      }
    },

    async *stream(path, request, abort) {
      if (abort?.aborted === true) return;
      const answers = call(path, request, null);
      const stop = () => answers.stop();
      abort?.addEventListener('abort', stop, { once: true });
      try {
        for (let answer = await answers.next(); answer !== null; answer = await answers.next()) yield answer;
      } finally {
        abort?.removeEventListener('abort', stop);
        answers.cancel();
      }
    },

    close() {
      connection?.close();
    },
  };
}

function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The messages of one call, in order, then its status. */
class Answers {
  private readonly stream: ReturnType<Http2Connection['request']>;
  private readonly messages: Buffer[] = [];
  /** Of a message that is not complete. */
  private chunks: Buffer[] = [];
  private chunkBytes = 0;
  /** Received, and neither credited to the server nor part of a message that waits for its reader. */
  private uncreditedBytes = 0;
  private httpStatus = '';
  private headers: Headers = new Map();
  /** null: the call has not ended. */
  private outcome: { readonly error: Error | null } | null = null;
  private wake: (() => void) | null = null;

  constructor(
    connection: Http2Connection,
    headers: readonly (readonly [name: string, value: string])[],
    body: Buffer,
  ) {
    this.stream = connection.request(headers, body, {
      headers: (received) => {
        this.httpStatus = received.get(':status') ?? this.httpStatus;
        // Trailers come last, and alone where the server answers nothing but a status.
        this.headers = received;
        const error = otherAnswer(received, this.httpStatus);
        if (error !== null) this.fail(error);
      },
      data: (chunk) => this.receive(chunk),
      end: () => this.settle(errorOf(this.headers, this.httpStatus)),
      failed: (failure) => this.settle(errorOfFailure(failure)),
    });
  }

  /** @returns null: the server has sent all. @throws what ended the call instead */
  async next(): Promise<Buffer | null> {
    for (;;) {
      const message = this.messages.shift();
      if (message !== undefined) {
        this.credit(prefixBytes + message.length);
        return message;
      }
      if (this.outcome !== null) {
        if (this.outcome.error === null) return null;
        throw this.outcome.error;
      }
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  fail(error: Error): void {
    this.cancel();
    this.settle(error);
  }

  /** Ends as if the server had sent all; what has arrived and was not read is dropped. */
  stop(): void {
    this.messages.length = 0;
    this.cancel();
    this.settle(null);
  }

  cancel(): void {
    this.stream.cancel();
  }

  private settle(error: Error | null): void {
    this.outcome ??= { error };
    this.wake?.();
  }

  private receive(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.chunkBytes += chunk.length;
    let creditBytes = chunk.length;
    for (;;) {
      if (this.chunkBytes < prefixBytes) break;
      const prefix = this.joined(prefixBytes);
      const length = prefix.readUInt32BE(1);
      if (prefix[0] !== 0) return this.fail(new CallError(grpcStatus.internal, 'the answer is compressed'));
      if (length > answerBytesMax)
        return this.fail(
          new CallError(grpcStatus.resourceExhausted, `the answer has ${length} bytes, which is too many`),
        );
      const end = prefixBytes + length;
      if (this.chunkBytes < end) break;
      const bytes = this.joined(this.chunkBytes);
      this.messages.push(bytes.subarray(prefixBytes, end));
      this.chunks = end < bytes.length ? [bytes.subarray(end)] : [];
      this.chunkBytes -= end;
      // A complete message counts until it is read: so a slow reader slows the server down. One that is not complete does
      // not: it may be larger than the window.
      creditBytes -= end;
    }
    this.credit(creditBytes);
    if (this.messages.length > 0) this.wake?.();
  }

  /** @returns what has arrived and is in no message yet: at least its first `bytes`, in one piece */
  private joined(bytes: number): Buffer {
    const [first] = this.chunks;
    if (first !== undefined && first.length >= bytes) return first;
    const all = Buffer.concat(this.chunks, this.chunkBytes);
    this.chunks = [all];
    return all;
  }

  private credit(bytes: number): void {
    this.uncreditedBytes += bytes;
    if (this.uncreditedBytes < streamWindowBytes / 4) return;
    this.stream.credit(this.uncreditedBytes);
    this.uncreditedBytes = 0;
  }
}

/** @returns null: the call has succeeded */
function errorOf(headers: Headers, httpStatus: string): CallError | null {
  const status = headers.get('grpc-status');
  if (status === '0') return null;
  if (status !== undefined)
    return new CallError(Number(status), percentDecoded(headers.get('grpc-message') ?? ''), headers);
  if (httpStatus === '200') return new CallError(grpcStatus.cancelled, 'the call ended without a status');
  const known = statusOfHttp[httpStatus] ?? grpcStatus.unknown;
  return new CallError(known, `the server answered with HTTP status ${httpStatus}`);
}

/** What follows such headers is a page for people, from a proxy or another server. @returns null: an answer of gRPC follows */
function otherAnswer(headers: Headers, httpStatus: string): CallError | null {
  // Statuses from 100 announce that the answer comes later.
  if (headers.has('grpc-status') || httpStatus.startsWith('1')) return null;
  if (httpStatus !== '200') return errorOf(headers, httpStatus);
  const type = headers.get('content-type') ?? 'application/grpc';
  if (type.startsWith('application/grpc')) return null;
  return new CallError(
    grpcStatus.unknown,
    `the server answered with ${type}, so it is not a coordinator, or a proxy answered for it`,
  );
}

/** As gRPC's specification maps what stands between a client and its server. */
const statusOfHttp: Readonly<Record<string, number>> = {
  '400': grpcStatus.internal,
  '401': grpcStatus.unauthenticated,
  '403': grpcStatus.permissionDenied,
  '404': grpcStatus.unimplemented,
  '429': grpcStatus.unavailable,
  '502': grpcStatus.unavailable,
  '503': grpcStatus.unavailable,
  '504': grpcStatus.unavailable,
};

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Error codes of HTTP/2 for which gRPC has a status; every other one is an internal error. */
const statusOfReset: Readonly<Record<number, number>> = {
  0: grpcStatus.cancelled,
  7: grpcStatus.unavailable,
  8: grpcStatus.cancelled,
  11: grpcStatus.resourceExhausted,
  12: grpcStatus.permissionDenied,
};

function errorOfFailure(failure: StreamFailure): Error {
  switch (failure.kind) {
    case 'reset':
      return new CallError(
        statusOfReset[failure.code] ?? grpcStatus.internal,
        `the server ended the call with HTTP/2 error ${failure.code}`,
      );
    case 'unreachable': {
      const { reason } = failure;
      // Of several addresses that were tried, only the code is reported.
      const code = 'code' in reason ? `${String(reason.code)}: ` : '';
      return new UnreachableError(`${code}${reason.message}`, { cause: reason });
    }
    case 'lost':
      return new CallError(
        grpcStatus.unavailable,
        `the connection to the coordinator was lost: ${failure.reason.message}`,
      );
    default: {
      const never: never = failure;
      return never;
    }
  }
}
