/**
 * A client's connection by HTTP/2 (RFC 9113) with as much of the protocol as calls need: no server push, no priorities, no
 * dynamic header table. It takes a socket, and knows nothing of gRPC.
 */
import type { Socket } from 'node:net';
import { decodeHeaders, encodeHeaders, type Headers } from './headers.ts';

/** What a stream receives, in order. Nothing follows `end` or `failed`. */
export interface StreamListener {
  headers(headers: Headers): void;
  /** @param chunk its bytes count as unread until `Http2Stream.credit` */
  data(chunk: Buffer): void;
  /** The server has sent all. */
  end(): void;
  failed(failure: StreamFailure): void;
}

/** Why a stream ended before the server had sent all. */
export type StreamFailure =
  /** The server ended this stream with an error code of HTTP/2. */
  | { readonly kind: 'reset'; readonly code: number }
  /** No server was reached: nothing of the request was read. */
  | { readonly kind: 'unreachable'; readonly reason: Error }
  /** The connection ended. */
  | { readonly kind: 'lost'; readonly reason: Error };

export interface Http2Stream {
  /** Lets the server send this many more bytes. */
  credit(bytes: number): void;
  /** Ends the stream; its listener is no longer invoked. */
  cancel(): void;
}

const frames = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;
const settings = { headerTableSize: 1, enablePush: 2, initialWindow: 4, maxFrameSize: 5 } as const;
const cancelled = 8;

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const frameHeaderBytes = 9;
/** What a server may send before anything else is agreed; this client agrees to no more. */
const frameBytesMax = 16_384;
/** Of answers that were not read yet, per stream. */
export const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 2 ** 31 - 1;
const windowBytesDefault = 65_535;
/**
 * After this duration without traffic the server is asked for a sign of life, and has the same time to answer. A machine that has
 * lost its power or its network closes no connection, and without this a stream would wait for it for ever.
 */
const quietMs = 30_000;
/** Trailers are status and details, which servers limit to some kilobytes. */
const headerBytesMax = 256 * 1024;

interface OpenStream {
  readonly listener: StreamListener;
  /** What of the request is not sent yet. */
  unsent: Buffer;
  sendWindow: number;
}

export class Http2Connection {
  private readonly socket: Socket;
  private readonly streams = new Map<number, OpenStream>();
  private nextStreamId = 1;
  /** Written before the socket may be written to. null: it may. */
  private held: Buffer[] | null = [];
  private unread: Buffer = Buffer.alloc(0);
  private isEstablished = false;
  private headerBlock: {
    readonly streamId: number;
    readonly flags: number;
    readonly parts: Buffer[];
  } | null = null;
  private sendWindow = windowBytesDefault;
  private initialSendWindow = windowBytesDefault;
  private sendFrameBytesMax = frameBytesMax;
  private receivedBytes = 0;
  private failure: Error | null = null;
  /** A ping was sent, and nothing was received since. */
  private isAsked = false;
  /** It takes no new streams: the server is leaving, or the connection has ended. */
  isClosing = false;

  /**
   * @param socket connecting or connected; it belongs to the connection from here on
   * @param readyEvent of the socket, after which the server is known to be the right one; nothing is written before
   */
  constructor(socket: Socket, readyEvent: 'connect' | 'secureConnect') {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.read(chunk));
    socket.on('error', (error) => (this.failure ??= error));
    socket.on('close', () => this.ended());
    // A server that ends its side sends nothing more.
    socket.on('end', () => socket.destroy());
    socket.setTimeout(quietMs);
    socket.on('timeout', () => this.quiet());
    socket.once(readyEvent, () => {
      const { held } = this;
      this.held = null;
      socket.write(Buffer.concat(held ?? []));
    });
    this.write(preface);
    this.send(frames.settings, 0, 0, [
      setting(settings.headerTableSize, 0),
      setting(settings.enablePush, 0),
      setting(settings.initialWindow, streamWindowBytes),
    ]);
    // Each stream has a limit of its own; together they need none.
    this.send(frames.windowUpdate, 0, 0, [uint32(connectionWindowBytes - windowBytesDefault)]);
    socket.unref();
  }

  /** @param body the whole of it, which is not empty */
  request(
    headers: readonly (readonly [name: string, value: string])[],
    body: Buffer,
    listener: StreamListener,
  ): Http2Stream {
    const id = this.nextStreamId;
    this.nextStreamId += 2;
    const stream: OpenStream = { listener, unsent: body, sendWindow: this.initialSendWindow };
    this.streams.set(id, stream);
    this.socket.ref();
    this.sendHeaderBlock(id, encodeHeaders(headers));
    this.sendBody(id, stream);
    return {
      credit: (bytes) => {
        if (bytes > 0 && this.streams.has(id)) this.send(frames.windowUpdate, 0, id, [uint32(bytes)]);
      },
      cancel: () => {
        if (!this.streams.has(id)) return;
        this.send(frames.reset, 0, id, [uint32(cancelled)]);
        this.remove(id);
      },
    };
  }

  close(): void {
    this.isClosing = true;
    this.socket.destroy();
  }

  /** The network has not answered so far. */
  get isConnecting(): boolean {
    return this.socket.connecting;
  }

  private quiet(): void {
    if (!this.isAsked) {
      this.isAsked = true;
      this.send(frames.ping, 0, 0, [Buffer.alloc(8)]);
      // While the socket connects, nothing is written that would start the timer again.
      this.socket.setTimeout(quietMs);
      return;
    }
    // A process that was stopped for a while has not read what arrived meanwhile: that comes first.
    setImmediate(() => {
      if (!this.isAsked) return;
      const error = new Error(`nothing was received for ${(2 * quietMs) / 1000} s`);
      this.socket.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
    });
  }

  // ---- Sending.

  private write(bytes: Buffer): void {
    if (this.held !== null) this.held.push(bytes);
    else this.socket.write(bytes);
  }

  private send(type: number, flagBits: number, streamId: number, parts: readonly Buffer[]): void {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const header = Buffer.alloc(frameHeaderBytes);
    header.writeUIntBE(length, 0, 3);
    header[3] = type;
    header[4] = flagBits;
    header.writeUInt32BE(streamId, 5);
    this.write(Buffer.concat([header, ...parts]));
  }

  private sendHeaderBlock(id: number, block: Buffer): void {
    for (let at = 0; at === 0 || at < block.length; at += frameBytesMax) {
      const isLast = at + frameBytesMax >= block.length;
      const type = at === 0 ? frames.headers : frames.continuation;
      this.send(type, isLast ? flags.endHeaders : 0, id, [block.subarray(at, at + frameBytesMax)]);
    }
  }

  /** Sends as much of a request as the server takes now. */
  private sendBody(id: number, stream: OpenStream): void {
    while (stream.unsent.length > 0) {
      const bytes = Math.min(
        stream.unsent.length,
        stream.sendWindow,
        this.sendWindow,
        this.sendFrameBytesMax,
      );
      if (bytes <= 0) return;
      const isLast = bytes === stream.unsent.length;
      this.send(frames.data, isLast ? flags.endStream : 0, id, [stream.unsent.subarray(0, bytes)]);
      stream.unsent = stream.unsent.subarray(bytes);
      stream.sendWindow -= bytes;
      this.sendWindow -= bytes;
    }
  }

  private sendBodies(): void {
    for (const [id, stream] of this.streams) this.sendBody(id, stream);
  }

  // ---- Receiving.

  private read(chunk: Buffer): void {
    this.isAsked = false;
    this.unread = this.unread.length === 0 ? chunk : Buffer.concat([this.unread, chunk]);
    try {
      while (this.unread.length >= frameHeaderBytes) {
        const length = this.unread.readUIntBE(0, 3);
        const type = this.unread[3] ?? 0;
        // A server that does not begin with its settings speaks another protocol.
        if (!this.isEstablished && type !== frames.settings)
          throw new Error('the server does not use HTTP/2');
        if (length > frameBytesMax) throw new Error(`frame of ${length} bytes`);
        const end = frameHeaderBytes + length;
        if (this.unread.length < end) return;
        const flagBits = this.unread[4] ?? 0;
        const streamId = this.unread.readUInt32BE(5) & 0x7fff_ffff;
        const payload = this.unread.subarray(frameHeaderBytes, end);
        this.unread = this.unread.subarray(end);
        this.frame(type, flagBits, streamId, payload);
      }
    } catch (error) {
      this.socket.destroy(error as Error);
    }
  }

  private frame(type: number, flagBits: number, streamId: number, payload: Buffer): void {
    if (this.headerBlock !== null && type !== frames.continuation)
      throw new Error('header block without its end');
    switch (type) {
      case frames.data: {
        this.receivedBytes += payload.length;
        if (this.receivedBytes > connectionWindowBytes / 2) {
          this.send(frames.windowUpdate, 0, 0, [uint32(this.receivedBytes)]);
          this.receivedBytes = 0;
        }
        const chunk = unpadded(payload, flagBits);
        const padding = payload.length - chunk.length;
        if (padding > 0 && this.streams.has(streamId))
          this.send(frames.windowUpdate, 0, streamId, [uint32(padding)]);
        this.streams.get(streamId)?.listener.data(chunk);
        if ((flagBits & flags.endStream) !== 0) this.finish(streamId);
        return;
      }
      case frames.headers: {
        const rest = unpadded(payload, flagBits);
        const block = (flagBits & flags.priority) === 0 ? rest : rest.subarray(5);
        this.headerBlock = { streamId, flags: flagBits, parts: [block] };
        if ((flagBits & flags.endHeaders) !== 0) this.headersComplete();
        return;
      }
      case frames.continuation: {
        if (this.headerBlock === null || this.headerBlock.streamId !== streamId)
          throw new Error('continuation of no header block');
        const { parts } = this.headerBlock;
        parts.push(payload);
        if (parts.reduce((sum, part) => sum + part.length, 0) > headerBytesMax)
          throw new Error('header block that is too large');
        if ((flagBits & flags.endHeaders) !== 0) this.headersComplete();
        return;
      }
      case frames.reset:
        this.fail(streamId, { kind: 'reset', code: payload.readUInt32BE(0) });
        return;
      case frames.settings:
        if ((flagBits & flags.ack) === 0) this.agree(payload);
        return;
      case frames.push:
        throw new Error('push, which was forbidden');
      case frames.ping:
        if ((flagBits & flags.ack) === 0) this.send(frames.ping, flags.ack, 0, [payload]);
        return;
      case frames.goAway:
        this.leave(payload.readUInt32BE(0) & 0x7fff_ffff, payload.readUInt32BE(4));
        return;
      case frames.windowUpdate: {
        const bytes = payload.readUInt32BE(0) & 0x7fff_ffff;
        const stream = this.streams.get(streamId);
        if (streamId === 0) this.sendWindow += bytes;
        else if (stream !== undefined) stream.sendWindow += bytes;
        this.sendBodies();
        return;
      }
      default: // Others are extensions, which may be ignored.
    }
  }

  private headersComplete(): void {
    if (this.headerBlock === null) return;
    const { streamId, flags: flagBits, parts } = this.headerBlock;
    this.headerBlock = null;
    this.streams.get(streamId)?.listener.headers(decodeHeaders(Buffer.concat(parts)));
    if ((flagBits & flags.endStream) !== 0) this.finish(streamId);
  }

  private agree(payload: Buffer): void {
    this.isEstablished = true;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const id = payload.readUInt16BE(at);
      const value = payload.readUInt32BE(at + 2);
      if (id === settings.maxFrameSize) this.sendFrameBytesMax = value;
      if (id !== settings.initialWindow) continue;
      for (const stream of this.streams.values()) stream.sendWindow += value - this.initialSendWindow;
      this.initialSendWindow = value;
    }
    this.send(frames.settings, flags.ack, 0, []);
    this.sendBodies();
  }

  /** The server deals with the streams up to this one, and with no other. */
  private leave(lastStreamId: number, code: number): void {
    this.isClosing = true;
    const why = code === 0 ? '' : ` (HTTP/2 error ${code})`;
    const reason = new Error(`the server takes no more calls${why}`);
    for (const id of this.streams.keys()) {
      if (id > lastStreamId) this.fail(id, { kind: 'lost', reason });
    }
    if (this.streams.size === 0) this.socket.destroy();
  }

  // ---- The end of a stream.

  private finish(id: number): void {
    const stream = this.streams.get(id);
    // It has answered without reading all of the request.
    if (stream !== undefined && stream.unsent.length > 0) this.send(frames.reset, 0, id, [uint32(cancelled)]);
    this.remove(id);
    stream?.listener.end();
  }

  private fail(id: number, failure: StreamFailure): void {
    const stream = this.streams.get(id);
    this.remove(id);
    stream?.listener.failed(failure);
  }

  private remove(id: number): void {
    if (!this.streams.delete(id) || this.streams.size > 0) return;
    if (this.isClosing) this.socket.destroy();
    else this.socket.unref();
  }

  private ended(): void {
    this.isClosing = true;
    const reason = this.failure ?? new Error('the server has closed the connection');
    const kind = this.isEstablished ? 'lost' : 'unreachable';
    for (const id of this.streams.keys()) this.fail(id, { kind, reason });
  }
}

function unpadded(payload: Buffer, flagBits: number): Buffer {
  if ((flagBits & flags.padded) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding >= payload.length) throw new Error('frame with more padding than content');
  return payload.subarray(1, payload.length - padding);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}
