/**
 * The calls of the API as plain functions, whichever way they come in, and how gRPC calls them: one place where errors become
 * statuses.
 */
import type { handleServerStreamingCall, handleUnaryCall } from '@grpc/grpc-js';
import { MusterError, messageOf } from '@muster/common/errors';
import type { MusterHandlers } from '@muster/common/gen/muster/v1/Muster';
import { toServiceError } from '@muster/common/wire/status';
import { callerOf } from '../auth/interceptor.ts';
import type { Identity } from '../caller.ts';

/** A call with one answer. */
export interface UnaryMethod<Request, Response> {
  readonly handle: (request: Request, caller: Identity) => Promise<Response>;
}

/** A call that is answered by a stream. */
export interface StreamMethod<Request, Response> {
  /** Resolves once the call is accepted. What it then yields ends soon after the signal is aborted. */
  readonly produce: (
    request: Request,
    abort: AbortSignal,
    caller: Identity,
  ) => Promise<AsyncIterable<Response>>;
}

/** Every call of the service `Muster`. */
export type MusterCalls = {
  readonly [Name in keyof MusterHandlers as string extends Name
    ? never
    : number extends Name
      ? never
      : Name]: MusterHandlers[Name] extends handleUnaryCall<infer Request, infer Response>
    ? UnaryMethod<Request, Response>
    : MusterHandlers[Name] extends handleServerStreamingCall<infer Request, infer Response>
      ? StreamMethod<Request, Response>
      : never;
};

export function unary<Request, Response>(
  handle: UnaryMethod<Request, Response>['handle'],
): UnaryMethod<Request, Response> {
  return { handle };
}

export function serverStream<Request, Response>(
  produce: StreamMethod<Request, Response>['produce'],
): StreamMethod<Request, Response> {
  return { produce };
}

/** The handlers that gRPC serves. */
export function grpcHandlers(calls: MusterCalls): MusterHandlers {
  const handlers = Object.entries(calls).map(([name, call]) => [
    name,
    'handle' in call
      ? unaryHandler(call as UnaryMethod<unknown, unknown>)
      : streamHandler(call as StreamMethod<unknown, unknown>),
  ]);
  return Object.fromEntries(handlers) as MusterHandlers;
}

export function unaryHandler<Request, Response>({
  handle,
}: UnaryMethod<Request, Response>): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    handle(call.request, callerOf(call)).then(
      (response) => callback(null, response),
      (error: unknown) => callback(toServiceError(asMusterError(error))),
    );
  };
}

/** Writes as fast as the client reads: a slow reader costs itself time and us one message. */
function streamHandler<Request, Response>({
  produce,
}: StreamMethod<Request, Response>): handleServerStreamingCall<Request, Response> {
  return (call) => {
    const abort = new AbortController();
    call.on('cancelled', () => abort.abort());
    call.on('close', () => abort.abort());
    call.on('error', () => abort.abort());
    const pump = async () => {
      for await (const message of await produce(call.request, abort.signal, callerOf(call))) {
        if (abort.signal.aborted) return;
        if (!call.write(message)) await drained(call, abort.signal);
      }
      call.end();
    };
    pump().catch((error: unknown) => endWithError(call, asMusterError(error)));
  };
}

/** Ends a stream with the error's status. `destroy(error)` would tear it down before gRPC could send that. */
export function endWithError(call: NodeJS.EventEmitter, error: MusterError): void {
  call.emit('error', toServiceError(error));
}

/** Resolves when the stream takes more, or is over. */
export function drained(stream: NodeJS.EventEmitter, abort: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.removeListener('drain', done);
      abort.removeEventListener('abort', done);
      resolve();
    };
    stream.once('drain', done);
    abort.addEventListener('abort', done, { once: true });
    if (abort.aborted) done();
  });
}

/** Whatever a handler has thrown, as clients are told. */
export function asMusterError(error: unknown): MusterError {
  if (error instanceof MusterError) return error;
  return new MusterError('internal', `the coordinator failed: ${messageOf(error)}`, { cause: error });
}
