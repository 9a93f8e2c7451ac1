/** Calls to a server of Node's HTTP/2, which knows more of the protocol than the client. */
import { once } from 'node:events';
import {
  constants,
  createServer,
  type Http2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import { type AddressInfo, connect, createServer as createTcpServer, Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type GrpcChannel, grpcChannel } from './channel.ts';
import { Http2Connection } from './connection.ts';
import { grpcStatus } from './status.ts';

const timeoutMs = 60_000;

/** @param dialled gets the socket of each connection */
function channelAt(port: number, dialled: (socket: Socket) => void = () => {}): GrpcChannel {
  const dial = () => {
    const socket = connect({ host: '127.0.0.1', port });
    dialled(socket);
    return new Http2Connection(socket, 'connect');
  };
  const channel = grpcChannel(dial, {
    scheme: 'http',
    authority: `127.0.0.1:${port}`,
    token: 'secret',
    headers: [['muster-version', '0.1.0']],
  });
  onTestFinished(() => channel.close());
  return channel;
}

/** A server whose answer to every call is what `serve` does with it. */
async function serverWith(
  serve: (stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>) => void,
  options: ServerOptions = {},
) {
  const server = createServer(options);
  const sessions: Http2Session[] = [];
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    serve(stream, headers);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const sockets: Socket[] = [];
  const channel = channelAt((server.address() as AddressInfo).port, (socket) => sockets.push(socket));
  return { channel, sessions, sockets };
}

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Answers with what a call has sent, which is framed already. */
function echo(stream: ServerHttp2Stream): void {
  const parts: Buffer[] = [];
  stream.on('data', (part: Buffer) => parts.push(part));
  stream.on('end', () => answer(stream, Buffer.concat(parts)));
}

function answer(stream: ServerHttp2Stream, framedMessages: Buffer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(framedMessages);
}

test('a call says what it is, and by whom', async () => {
  let asked: Readonly<Record<string, unknown>> = {};
  const { channel } = await serverWith((stream, headers) => {
    asked = headers;
    echo(stream);
  });
  expect(await channel.unary('/a.B/C', Buffer.from('hello'), timeoutMs)).toEqual(Buffer.from('hello'));
  expect(asked).toMatchObject({
    ':method': 'POST',
    ':path': '/a.B/C',
    authorization: 'Bearer secret',
    'muster-version': '0.1.0',
    'content-type': 'application/grpc',
    'grpc-timeout': `${timeoutMs}m`,
    te: 'trailers',
  });
});

test.each([
  ['without padding', {}],
  ['with padding', { paddingStrategy: constants.PADDING_STRATEGY_MAX }],
  ['to a server that takes little at once', { settings: { initialWindowSize: 1_000 } }],
])('requests and answers larger than every window travel whole, %s', async (_how, options) => {
  const { channel } = await serverWith(echo, options);
  const large = Buffer.alloc(3_000_000, 'abcdefg');
  const answers = await Promise.all(
    [1, 2, 3].map(() => channel.unary('/a.B/C', large, timeoutMs).then((each) => each.equals(large))),
  );
  expect(answers).toEqual([true, true, true]);
});

test('messages of a stream arrive one by one, and a reader that waits makes the server wait', async () => {
  const message = framed(Buffer.alloc(100_000, 'x'));
  let written = 0;
  const { channel } = await serverWith((stream) => {
    stream.respond({ ':status': 200 });
    const writeOn = () => {
      while (written < 200) {
        written += 1;
        if (stream.write(message)) continue;
        stream.once('drain', writeOn);
        return;
      }
    };
    writeOn();
  });
  const messages = channel.stream('/a.B/C', Buffer.alloc(0));
  expect((await messages.next()).value).toHaveLength(100_000);
  let before = -1;
  await vi.waitUntil(
    () => {
      const isStill = before === written;
      before = written;
      return isStill;
    },
    { interval: 300, timeout: timeoutMs },
  );
  expect(written).toBeLessThan(100);
  let read = 1;
  while (read < 200 && (await messages.next()).value !== undefined) read += 1;
  expect(written).toBe(200);
  await messages.return(undefined);
});

test('a status is reported with its words and what comes beside it, in trailers or alone', async () => {
  const status = { 'grpc-status': '5', 'grpc-message': encodeURI('kein Job „ä“'), 'x-more': 'YQ' };
  const inTrailers = await serverWith((stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers(status));
    stream.end();
  });
  const alone = await serverWith((stream) =>
    stream.respond({ ':status': 200, ...status }, { endStream: true }),
  );
  for (const { channel } of [inTrailers, alone]) {
    const error = await channel.unary('/a.B/C', Buffer.alloc(0), timeoutMs).catch((each: unknown) => each);
    expect(error).toMatchObject({ status: grpcStatus.notFound, message: 'kein Job „ä“' });
    expect((error as { trailers: Map<string, string> }).trailers.get('x-more')).toBe('YQ');
  }
});

test.each([
  ['that ends without a status', (stream: ServerHttp2Stream) => stream.close(), grpcStatus.cancelled],
  [
    'that the server refuses',
    (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM),
    grpcStatus.unavailable,
  ],
  [
    'that breaks the protocol, as the server says',
    (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_PROTOCOL_ERROR),
    grpcStatus.internal,
  ],
  [
    'that something before the coordinator answers',
    (stream: ServerHttp2Stream) => stream.respond({ ':status': 503 }, { endStream: true }),
    grpcStatus.unavailable,
  ],
  [
    'that a proxy answers with a page and a status',
    (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 502, 'content-type': 'text/html' });
      stream.end('<html>Bad Gateway</html>');
    },
    grpcStatus.unavailable,
  ],
  [
    'that a server of web pages answers',
    (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200, 'content-type': 'text/html' });
      stream.end('<html>Welcome</html>');
    },
    grpcStatus.unknown,
  ],
  [
    'whose connection breaks',
    (stream: ServerHttp2Stream) => stream.session?.destroy(),
    grpcStatus.unavailable,
  ],
  [
    'with a compressed answer',
    (stream: ServerHttp2Stream) => answer(stream, Buffer.from([1, 0, 0, 0, 0])),
    grpcStatus.internal,
  ],
  [
    'with an answer that is too large',
    (stream: ServerHttp2Stream) => answer(stream, Buffer.from([0, 255, 0, 0, 0])),
    grpcStatus.resourceExhausted,
  ],
  ['without an answer', (stream: ServerHttp2Stream) => answer(stream, Buffer.alloc(0)), grpcStatus.internal],
])('a call %s fails with a status', async (_what, serve, status) => {
  const { channel } = await serverWith(serve);
  await expect(channel.unary('/a.B/C', Buffer.alloc(0), timeoutMs)).rejects.toMatchObject({ status });
});

test('a call that is not answered in time fails, and the server learns that it is over', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<number>();
  const { channel } = await serverWith((stream) => {
    stream.on('close', () => closed.resolve(stream.rstCode));
    arrived.resolve();
  });
  const call = channel.unary('/a.B/C', Buffer.alloc(0), 50);
  const refused = call.catch((error: unknown) => error);
  await arrived.promise;
  vi.advanceTimersByTime(50);
  expect(await refused).toMatchObject({ status: grpcStatus.deadlineExceeded });
  expect(await closed.promise).toBe(constants.NGHTTP2_CANCEL);
});

test('a stream ends without an error when its signal fires', async () => {
  const { channel } = await serverWith((stream) => {
    stream.respond({ ':status': 200 });
    stream.write(framed(Buffer.from('one')));
  });
  const abort = new AbortController();
  const read: string[] = [];
  for await (const message of channel.stream('/a.B/C', Buffer.alloc(0), abort.signal)) {
    read.push(message.toString());
    abort.abort();
  }
  expect(read).toEqual(['one']);
});

test('after the connection has ended, or the server is leaving, the next call opens another', async () => {
  const { channel, sessions } = await serverWith(echo);
  const call = async (text: string) => String(await channel.unary('/a.B/C', Buffer.from(text), timeoutMs));
  expect(await call('one')).toBe('one');
  expect(await call('two')).toBe('two');
  expect(sessions).toHaveLength(1);
  for (const session of sessions) {
    const closed = once(session, 'close');
    session.close();
    await closed;
  }
  expect(await call('three')).toBe('three');
  expect(sessions).toHaveLength(2);
  sessions[1]?.destroy();
  await vi.waitFor(async () => expect(await call('four')).toBe('four'), { timeout: timeoutMs });
});

test('pings are answered', async () => {
  const { channel, sessions } = await serverWith(echo);
  await channel.unary('/a.B/C', Buffer.from('one'), timeoutMs);
  const answered = Promise.withResolvers<Buffer>();
  sessions[0]?.ping(Buffer.from('12345678'), (error, _ms, payload) =>
    error === null ? answered.resolve(payload) : answered.reject(error),
  );
  expect(String(await answered.promise)).toBe('12345678');
});

test('a quiet server is pinged, and stays the server as long as it answers', async () => {
  let pings = 0;
  const { channel, sessions, sockets } = await serverWith((stream) => {
    stream.respond({ ':status': 200 });
    stream.write(framed(Buffer.from('one')));
    stream.session?.on('ping', () => {
      pings += 1;
      if (pings === 3) stream.write(framed(Buffer.from('two')));
    });
  });
  const messages = channel.stream('/a.B/C', Buffer.alloc(0));
  expect(String((await messages.next()).value)).toBe('one');
  const [socket] = sockets;
  for (let answered = 0; answered < 3; answered += 1) {
    const received = once(socket ?? new Socket(), 'data');
    socket?.emit('timeout');
    await received;
  }
  expect(String((await messages.next()).value)).toBe('two');
  expect(sessions).toHaveLength(1);
  await messages.return(undefined);
});

test.each([
  ['before it has said anything', Buffer.alloc(0), { name: 'UnreachableError' }],
  [
    'later',
    Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
    { status: grpcStatus.unavailable, message: expect.stringContaining('nothing was received') },
  ],
])('a server that is silent %s is lost', async (_when, greeting, error) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write(greeting));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  let dialled = new Socket();
  const channel = channelAt((server.address() as AddressInfo).port, (socket) => (dialled = socket));
  const call = channel.stream('/a.B/C', Buffer.alloc(0)).next();
  call.catch(() => {});
  await once(dialled, greeting.length === 0 ? 'connect' : 'data');
  dialled.emit('timeout');
  dialled.emit('timeout');
  await expect(call).rejects.toMatchObject(error);
});

test.each([
  ['uses another protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'does not use HTTP/2'],
  ['closes every connection', '', 'closed the connection'],
])('a server that %s was not reached', async (_what, text, message) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(text));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const channel = channelAt((server.address() as AddressInfo).port);
  await expect(channel.unary('/a.B/C', Buffer.alloc(0), timeoutMs)).rejects.toMatchObject({
    name: 'UnreachableError',
    message: expect.stringContaining(message),
  });
});
