/** One HTTP exchange with the container engine over its unix socket, and what its failures mean. */
import { type IncomingMessage, request } from 'node:http';

const answerBytesMax = 16 * 1024 * 1024;

export class EngineError extends Error {
  override readonly name = 'EngineError';
  /** HTTP status of a refusal, whose message is the engine's own. null: no (whole) answer from the engine. */
  readonly status: number | null;

  constructor(status: number | null, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export interface EngineCall {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  /** Without the API version. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** From the request to the last byte of the answer; null: a stream or a wait, bounded by `signal` alone. */
  readonly deadlineMs: number | null;
  readonly signal?: AbortSignal;
}

/**
 * Sends a call and reads its answer.
 * @param prefix the API version as the path spells it, or nothing
 * @throws {EngineError} when the engine refuses, is away, or misses the deadline
 * @throws the reason of `call.signal` when that was aborted
 */
export async function exchange<T>(
  socketPath: string,
  prefix: string,
  call: EngineCall,
  read: (response: IncomingMessage) => Promise<T>,
): Promise<T> {
  const deadline = call.deadlineMs === null ? [] : [AbortSignal.timeout(call.deadlineMs)];
  const signal = AbortSignal.any(call.signal === undefined ? deadline : [call.signal, ...deadline]);
  try {
    const response = await send(socketPath, prefix, call, signal);
    const status = response.statusCode ?? 0;
    if (status >= 400) throw new EngineError(status, refusal(status, await readTextAnswer(response)));
    return await read(response);
  } catch (error) {
    if (call.signal?.aborted !== true && signal.aborted) {
      throw new EngineError(
        null,
        `the container engine at ${socketPath} gave no answer to ${call.method} ${call.path} within ` +
          `${(call.deadlineMs ?? 0) / 1000} s: look at its log (\`journalctl -u docker\`)`,
      );
    }
    throw explain(socketPath, call, error);
  }
}

/** The body of an answer that `exchange` has opened, piece by piece; fails as `exchange` does. */
export async function* pieces(
  socketPath: string,
  call: EngineCall,
  response: IncomingMessage,
): AsyncGenerator<Buffer> {
  try {
    yield* response as AsyncIterable<Buffer>;
  } catch (error) {
    throw explain(socketPath, call, error);
  }
}

export async function readTextAnswer(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) throw new Error(`an answer of more than ${answerBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export async function readJsonAnswer<T>(response: IncomingMessage): Promise<T> {
  return JSON.parse(await readTextAnswer(response)) as T;
}

function send(
  socketPath: string,
  prefix: string,
  call: EngineCall,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const query = new URLSearchParams(call.query).toString();
  const body = call.body === undefined ? null : Buffer.from(JSON.stringify(call.body));
  return new Promise((resolve, reject) => {
    const outgoing = request({
      socketPath,
      // A connection per call: over a unix socket it costs nothing, and none is found dead after the engine restarted.
      agent: false,
      method: call.method,
      path: `${prefix}${call.path}${query === '' ? '' : `?${query}`}`,
      headers: {
        host: 'docker',
        ...(body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
      },
      signal,
    });
    outgoing.once('response', resolve);
    outgoing.once('error', reject);
    outgoing.end(body ?? undefined);
  });
}

function explain(socketPath: string, call: EngineCall, error: unknown): unknown {
  if (error instanceof EngineError) return error;
  if (call.signal?.aborted === true) return call.signal.reason;
  return new EngineError(null, unreachable(socketPath, error), { cause: error });
}

function unreachable(socketPath: string, error: unknown): string {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  const start = 'start it with `systemctl start docker`, or install it (Debian: `apt install docker.io`)';
  if (code === 'ENOENT') return `no container engine: there is no socket ${socketPath}; ${start}`;
  if (code === 'ECONNREFUSED') return `no container engine listens on ${socketPath}; ${start}`;
  if (code === 'EACCES') {
    return `no permission for the container engine's socket ${socketPath}: run the agent as root or in the group docker`;
  }
  const reason = error instanceof Error ? error.message : String(error);
  return `the connection to the container engine at ${socketPath} broke: ${reason}`;
}

/** The engine's own words where it has some. */
function refusal(status: number, text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: string };
    if (typeof message === 'string') return message;
  } catch {
    // Not the engine's JSON: a proxy answers, and its words are all we have.
  }
  return text.trim() === '' ? `HTTP status ${status}` : text.trim();
}
