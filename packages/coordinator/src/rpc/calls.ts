/** Turns plain async functions into gRPC handlers: one place where errors become statuses. */
import type { handleServerStreamingCall, handleUnaryCall } from '@grpc/grpc-js';
import { MusterError, messageOf } from '@muster/common/errors';
import { toServiceError } from '@muster/common/wire/status';
import { callerOf } from '../auth/interceptor.ts';
import type { Identity } from '../caller.ts';

export function unary<Request, Response>(
  handle: (request: Request, caller: Identity) => Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    handle(call.request, callerOf(call)).then(
      (response) => callback(null, response),
      (error: unknown) => callback(toServiceError(asMusterError(error))),
    );
  };
}

/** Writes as fast as the client reads: a slow reader costs itself time and us one message. */
export function serverStream<Request, Response>(
  produce: (request: Request, abort: AbortSignal, caller: Identity) => AsyncIterable<Response>,
): handleServerStreamingCall<Request, Response> {
  return (call) => {
    const abort = new AbortController();
    call.on('cancelled', () => abort.abort());
    call.on('close', () => abort.abort());
    call.on('error', () => abort.abort());
    const pump = async () => {
      for await (const message of produce(call.request, abort.signal, callerOf(call))) {
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

function asMusterError(error: unknown): MusterError {
  if (error instanceof MusterError) return error;
  return new MusterError('internal', `the coordinator failed: ${messageOf(error)}`, { cause: error });
}
